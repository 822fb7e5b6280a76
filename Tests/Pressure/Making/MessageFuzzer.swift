// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import SeededRandom
internal import UbiquitousStoreTesting

/// Sends nonsense to a service, from a seed, and looks at what it answers.
///
/// It blocks: call it where nobody minds.
public final class MessageFuzzer {
    /// What came of it.
    public struct Report: Sendable {
        /// Messages that were sent.
        public var sent = 0
        /// Those of them that were no messages; each had a connection of its own.
        public var broken = 0
        /// Answers by what they were: "" for no error.
        public var answers: [String: Int] = [:]
        /// Errors by names that neither the interface nor the D-Bus specification has, and what they answered.
        public var strangers: [String: String] = [:]
        /// Messages that should have been answered.
        public var unanswered: [String] = []
        /// How often the bus broke off a connection that had sent messages.
        public var disconnections = 0
    }

    /// So many calls wait for their answers on a connection; the system bus allows 128.
    private static let window = 48
    /// What is not answered by then, never is; in ms.
    private static let patience = 60_000

    private let site: Site
    private var nonsense: Nonsense
    private var lanes: [Lane]
    /// What came of it until now.
    public private(set) var report = Report()

    /// Of four users: two, root, and the service's.
    ///
    /// - Throws: `StartFailure`.
    public init(_ site: Site, seed: UInt64) throws {
        self.site = site
        nonsense = Nonsense(seed: seed, address: "folder://\(site.folder)")
        lanes = try [Site.attacker, Site.users[0], nil, Site.service].map { try Lane(site.bus, $0) }
    }

    /// Sends so many messages more, and waits for their answers.
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
            // The service waits where nobody takes what it notifies of.
            _ = site.device.notified
            idle = isIdle ? idle + 1 : 0
            if idle * lanes.count > Self.patience { break }
        }
        report.unanswered += lanes.flatMap { $0.waiting.values }.sorted()
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
                lane.waiting[serial] = "\(message.interface ?? "-").\(message.member ?? "-") \(message.signature)"
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
            if let name = reply.errorName, !ErrorNames.known.contains(name) { report.strangers[name] = call }
        }
        return !replies.isEmpty
    }
}

/// A connection, and what waits for an answer on it.
private final class Lane {
    let user: UInt32?
    private(set) var client: RawClient
    var waiting: [UInt32: String] = [:]

    init(_ bus: PrivateBus, _ user: UInt32?) throws {
        self.user = user
        client = try RawClient(bus, as: user)
    }

    func connect(_ bus: PrivateBus) throws {
        client = try RawClient(bus, as: user)
        waiting = [:]
    }
}

/// Errors that a caller may get.
private enum ErrorNames {
    static let known = Set(
        own.map { "org.example.UbiquitousStore.Error.\($0)" } + standard.map { "org.freedesktop.DBus.Error.\($0)" })

    private static let own = [
        "NoSuchKey", "InvalidKey", "KeyTooLong", "InvalidValue", "DepthExceeded", "QuotaExceeded", "NotEntitled",
        "IdentityUnknown", "AmbiguousIdentity", "NoSuchStore", "Conflict", "NotSignedIn", "NoAccount",
        "BackendUnavailable", "BackendAuthenticationFailed", "BackendFull", "BackendUnsupported",
        "RemoteFormatTooNew", "Busy", "Corrupt",
    ]
    /// Those that the interface names, and what the specification has for whoever calls what isn't there.
    private static let standard = [
        "InvalidArgs", "AccessDenied", "LimitsExceeded", "UnknownObject", "UnknownMethod", "UnknownInterface",
        "UnknownProperty", "PropertyReadOnly",
    ]
}
