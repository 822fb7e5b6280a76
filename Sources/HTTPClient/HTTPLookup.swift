// SPDX-License-Identifier: Apache-2.0

// libcurl looks up names on threads that it leaves behind when a request ends first, however many they are. So the code
// that makes a client can look up names in another way, and the session tells libcurl the addresses. Only where the
// environment names proxies does libcurl look up names itself: the proxies', which the administrator has chosen.

internal import EventLoop
internal import RemoteAddress
internal import Synchronization

/// A lookup of a host's addresses.
package final class HTTPLookup: Sendable {
    /// The host's name.
    package let host: String
    private let waiter: Mutex<CheckedContinuation<[String]?, Never>?>

    init(_ host: String, _ waiter: CheckedContinuation<[String]?, Never>) {
        self.host = host
        self.waiter = Mutex(waiter)
    }

    /// Whether the addresses are still needed.
    package var isWanted: Bool { waiter.withLock { $0 != nil } }

    /// Ends the lookup with the addresses as text, in their order; `nil` if there are none.
    package func end(_ addresses: [String]?) {
        waiter.withLock { waiter in
            defer { waiter = nil }
            return waiter
        }?.resume(returning: addresses)
    }
}

/// The addresses of a client's servers.
@BusActor
final class HTTPAddresses {
    private let options: HTTPOptions
    private var known: [String: (addresses: [String], until: UInt64)] = [:]
    private var underWay: [HTTPLookup] = []

    nonisolated init(_ options: HTTPOptions) { self.options = options }

    /// How long an answer counts, in microseconds: as long as with libcurl.
    private static let life: UInt64 = 60_000_000

    /// Returns the addresses of a request's host; `nil` leaves the host to libcurl, since its addresses need no lookup.
    func find(_ host: String) async throws(HTTPFailure) -> [String]? {
        guard let lookUp = options.lookUp, Self.needsLookup(host), !HTTPProxy.isInEnvironment else { return nil }
        if let known = known[host], EventLoop.now < known.until { return known.addresses }
        let found = await addresses(of: host, by: lookUp)
        // A connection may still be there, or the addresses still be right.
        guard let addresses = found ?? known[host]?.addresses else { throw .nameUnknown(host) }
        if found != nil { known[host] = (addresses, EventLoop.now + Self.life) }
        return addresses
    }

    private func addresses(of host: String, by lookUp: @Sendable (HTTPLookup) -> Void) async -> [String]? {
        var timer: EventSource?
        defer { timer?.cancel() }
        return await withCheckedContinuation { continuation in
            let lookup = HTTPLookup(host, continuation)
            underWay.removeAll { !$0.isWanted }
            underWay.append(lookup)
            timer = EventLoop.shared.after(options.lookupTime) { lookup.end(nil) }
            lookUp(lookup)
        }
    }

    /// Ends the lookups under way, without addresses.
    func close() {
        for lookup in underWay { lookup.end(nil) }
        underWay = []
    }

    /// Whether a host is a name that libcurl would look up.
    private static func needsLookup(_ host: String) -> Bool {
        !host.hasPrefix("[") && !HTTPAddress(isSecure: true, host: host, path: "/").isLoopback
            && !RemoteAddress.isIPv4(host)
    }
}

extension HTTPOptions {
    /// The time limit for looking up a name.
    fileprivate var lookupTime: Duration {
        guard let deadline else { return connectTime }
        return min(connectTime, max(.seconds(1), ContinuousClock.now.duration(to: deadline)))
    }
}
