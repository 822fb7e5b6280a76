// SPDX-License-Identifier: Apache-2.0

// Prints the signals of a store as they arrive: `watch-store ADDRESS PATH [FLAGS]`, with the flags of Subscribe.
//
// The demo's subscriber, as small as possible. busctl can't subscribe: a subscription belongs to the connection that
// made it, and busctl's connection ends with the call.

internal import Glibc
internal import PropertyList
internal import SDBus
internal import StoreBus

@main
struct WatchStore {
    static func main() {
        let arguments = CommandLine.arguments
        guard (3...4).contains(arguments.count), let flags = UInt64(arguments.count == 4 ? arguments[3] : "0") else {
            print("usage: watch-store ADDRESS PATH [FLAGS]")
            exit(2)
        }
        let (address, path) = (arguments[1], arguments[2])
        exit(
            EventLoop.runOnThisThread(handling: Watching.signals) {
                do {
                    try await Watching.begin(address, path, flags)
                    return nil
                } catch {
                    print("watch-store: \(error)")
                    return 1
                }
            })
    }
}

@BusActor
private enum Watching {
    private static var connection: BusConnection?
    private static var match: Slot?
    private static var ends: [EventSource] = []
    nonisolated static let signals = [SIGINT, SIGTERM]

    static func begin(_ address: String, _ path: String, _ flags: UInt64) async throws {
        let connection = try BusConnection.open(.address(address), description: "watch-store")
        connection.onDisconnect = { EventLoop.shared.exit(1) }
        ends = signals.map { EventLoop.shared.onSignal($0) { EventLoop.shared.exit(0) } }
        // With a sender, the bus delivers no broadcasts of others. It still delivers what others send to us alone.
        match = try await connection.addMatch(
            "type='signal',sender='\(BusNames.service)',interface='\(BusNames.storeInterface)',path='\(path)'"
        ) { try? show($0) }
        let generation = try await connection.call(
            BusNames.service, path, BusNames.storeInterface, "Subscribe",
            build: { try $0.append(flags) }, decode: { try $0.readUInt64() })
        self.connection = connection
        line("subscribed at generation \(generation)")
    }

    private static func show(_ signal: Message) throws {
        let reason = ChangeReason.word(for: try signal.readUInt32())
        let keys = try signal.readStrings()
        let generation = try signal.readUInt64()
        let info = try signal.readValues().map { "\($0.key)=\($0.value.short)" }.sorted()
        line(
            "DidChangeExternally: \(reason), keys \(keys.joined(separator: " ")), generation \(generation)"
                + (info.isEmpty ? "" : ", " + info.joined(separator: " ")))
    }

    private static func line(_ text: String) {
        print(text)
        fflush(nil)
    }
}

extension Value {
    fileprivate var short: String {
        switch self {
        case .string(let text): text.string
        case .integer(let number): "\(number)"
        default: "\(self)"
        }
    }
}
