// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import SeededRandom
internal import UbiquitousStoreTesting

/// Sends malformed messages to a service, from a seed, and examines the replies.
///
/// Its calls block the thread.
public final class MessageFuzzer {
    /// The results.
    public struct Report: Sendable {
        /// The number of messages that were sent.
        public var sent = 0
        /// How many of them were no valid messages. Each of these had its own connection.
        public var broken = 0
        /// The number of replies by the name of the error, which is empty without an error.
        public var answers: [String: Int] = [:]
        /// Errors that the interface's definition doesn't list for a call, and the calls that got them.
        public var strangers: [String: String] = [:]
        /// Calls that should have been answered, and were not.
        public var unanswered: [String] = []
        /// How often the bus closed a connection that had sent messages.
        public var disconnections = 0
    }

    /// How many calls wait for replies on one connection. The system bus allows 128.
    private static let window = 48
    /// How long to wait for replies, in ms.
    private static let patience = 60_000

    private let site: Site
    private let errors: DocumentedErrors
    private var nonsense: Nonsense
    private var lanes: [Lane]
    /// The results so far.
    public private(set) var report = Report()

    /// Makes a fuzzer that sends as four users: two ordinary ones, root, and the service's.
    ///
    /// - Parameter errors: those that calls may get.
    /// - Throws: `StartFailure`.
    public init(_ site: Site, seed: UInt64, errors: DocumentedErrors) throws {
        (self.site, self.errors) = (site, errors)
        nonsense = Nonsense(seed: seed, address: "folder://\(site.folder)")
        lanes = try [Site.attacker, Site.users[0], nil, Site.service].map { try Lane(site.bus, $0) }
    }

    /// Sends so many more messages, and waits for the replies.
    ///
    /// - Throws: `StartFailure` if the bus can't be connected to.
    @discardableResult
    public func send(_ count: Int) throws -> Report {
        let end = report.sent + count
        var idle = 0
        while report.sent < end || lanes.contains(where: { !$0.waiting.isEmpty }) {
            var isIdle = true
            for lane in lanes {
                if report.sent < end { try fill(lane, until: end) }
                if try turn(lane, waiting: idle == 0 ? 0 : 1) { isIdle = false }
            }
            // The service's notifications have to be read, because the service waits for that.
            _ = site.device.notified
            idle = isIdle ? idle + 1 : 0
            if idle * lanes.count > Self.patience { break }
        }
        report.unanswered += lanes.flatMap { $0.waiting.values.map(\.description) }.sorted()
        for lane in lanes { lane.waiting = [:] }
        return report
    }

    private func fill(_ lane: Lane, until end: Int) throws {
        while report.sent < end, lane.waiting.count < Self.window, lane.client.unsentCount < 1 << 20 {
            report.sent += 1
            if nonsense.oneIn(100) {
                try sendBroken(as: lane.user)
                continue
            }
            let message = nonsense.message()
            let serial = lane.client.nextSerial()
            if message.expectsReply {
                lane.waiting[serial] = Call(
                    interface: message.interface, member: message.member, signature: message.signature)
            }
            lane.client.enqueue(message.bytes(serial: serial))
        }
    }

    private func sendBroken(as user: UInt32?) throws {
        report.broken += 1
        let client = try RawClient(site.bus, as: user)
        client.enqueue(nonsense.broken(serial: client.nextSerial()))
        _ = client.turn(waiting: 0)
    }

    /// - Returns: whether something happened.
    private func turn(_ lane: Lane, waiting milliseconds: Int32) throws -> Bool {
        guard let replies = lane.client.turn(waiting: milliseconds) else {
            report.disconnections += 1
            try lane.connect(site.bus)
            return true
        }
        for reply in replies {
            guard let call = lane.waiting.removeValue(forKey: reply.replySerial) else { continue }
            report.answers[reply.errorName ?? "", default: 0] += 1
            guard let name = reply.errorName else { continue }
            let isListed = errors.names(interface: call.interface, member: call.member).contains(name)
            if !isListed { report.strangers[name] = call.description }
        }
        return !replies.isEmpty
    }
}

/// A connection, and the calls on it that wait for a reply.
private final class Lane {
    let user: UInt32?
    private(set) var client: RawClient
    var waiting: [UInt32: Call] = [:]

    init(_ bus: PrivateBus, _ user: UInt32?) throws {
        self.user = user
        client = try RawClient(bus, as: user)
    }

    func connect(_ bus: PrivateBus) throws {
        client = try RawClient(bus, as: user)
        waiting = [:]
    }
}

/// A call that waits for its reply.
private struct Call: CustomStringConvertible {
    let interface: String?
    let member: String?
    let signature: String

    var description: String { "\(interface ?? "-").\(member ?? "-") \(signature)" }
}
