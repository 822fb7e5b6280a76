// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import PropertyList
internal import SDBus
internal import StoreBus

/// Calls the service, as far as this program needs it. It doesn't use the client library, which would bring Foundation
/// along.
///
/// It doesn't verify the senders of signals, because a signal only makes it read the service's state.
@BusActor
final class Service {
    private let bus: BusConnection
    private let account = BusNames.accountPath(uid: geteuid())
    private var matches: [Slot] = []
    private var isSubscribed = false
    /// Called when the account has changed, or a service has started.
    var onChange: (@BusActor () -> Void)?

    private static let daemon = "org.freedesktop.DBus"

    /// - Throws: `BusError`.
    init(_ bus: BusConnection) async throws {
        self.bus = bus
        let interface = BusNames.accountInterface
        try await listen("sender='\(BusNames.service)',path='\(account)',interface='\(interface)'") { service, _ in
            service.onChange?()
        }
        let owner = "member='NameOwnerChanged',arg0='\(BusNames.service)'"
        try await listen("sender='\(Self.daemon)',interface='\(Self.daemon)',\(owner)") { service, signal in
            service.isSubscribed = false
            for _ in 0..<2 { _ = try signal.readString() }
            // A service that has ended is started by the programs that use it, not by this one.
            if !(try signal.readString()).isEmpty { service.onChange?() }
        }
    }

    isolated deinit {}

    private func listen(_ rule: String, _ handler: @escaping @BusActor (Service, Message) throws -> Void) async throws {
        let slot = try await bus.addMatch("type='signal'," + rule) { [weak self] in
            if let self { try? handler(self, $0) }
        }
        matches.append(slot)
    }

    /// Returns the account's state, and subscribes to its changes.
    /// - Throws: `BusError`.
    func look() async throws -> Look {
        if !isSubscribed {
            try await bus.call(
                BusNames.service, account, BusNames.accountInterface, "Subscribe",
                build: { try $0.append(0 as UInt64) }, decode: { _ in })
            isSubscribed = true
        }
        let properties = try await properties(account, BusNames.accountInterface)
        return Look(
            state: AccountStatus(rawValue: properties.text("State")), errorName: properties.text("LastErrorName"),
            account: properties.text("AccountIdentifier"))
    }

    /// The account's state at one moment.
    struct Look: Equatable, Sendable {
        let state: AccountStatus
        /// The D-Bus name of the last error; empty if there is none.
        let errorName: String
        let account: String

        /// Whether the first download waits for parts of the account that are missing.
        var lacksParts: Bool { state == .initialSync && !errorName.isEmpty }
    }

    /// Returns the stores that have reached a limit.
    /// - Throws: `BusError`.
    func fullStores() async throws -> [String] {
        var full: [String] = []
        for (identifier, path) in try await stores() {
            do {
                if Self.isFull(try await properties(path, BusNames.storeInterface)) { full.append(identifier) }
            } catch let error as BusError where error.name.hasSuffix(".UnknownObject") {
                // The store was removed meanwhile.
                continue
            }
        }
        return full
    }

    private static func isFull(_ store: [Text: Value]) -> Bool {
        guard case .dictionary(let limits) = store["Limits"] else { return false }
        return [("KeyCount", "keys"), ("BytesUsed", "total-bytes")].contains { usage, limit in
            guard case .integer(let used) = store[Text(usage)], case .integer(let most) = limits[Text(limit)] else {
                return false
            }
            // A store is seldom full to the byte.
            return used >= most - most / 100
        }
    }

    private func stores() async throws -> [(identifier: String, path: String)] {
        try await bus.call(
            BusNames.service, BusNames.managerPath, BusNames.managerInterface, "ListStores",
            build: { try $0.append(0 as UInt64) },
            decode: { answer in
                var stores: [(String, String)] = []
                try answer.enterContainer("a", "(uso)")
                while try answer.enterContainer("r", "uso") {
                    let uid = try answer.readUInt32()
                    let store = (try answer.readString(), try answer.readString())
                    if uid == geteuid() { stores.append(store) }
                    try answer.exitContainer()
                }
                return stores
            })
    }

    private func properties(_ path: String, _ interface: String) async throws -> [Text: Value] {
        try await bus.call(
            BusNames.service, path, "org.freedesktop.DBus.Properties", "GetAll",
            build: { try $0.append(interface) },
            decode: { answer in
                Dictionary(try answer.readValues().map { (Text($0.key), $0.value) }) { first, _ in first }
            })
    }
}

extension [Text: Value] {
    fileprivate func text(_ name: Text) -> String {
        if case .string(let text) = self[name] { text.string } else { "" }
    }
}
