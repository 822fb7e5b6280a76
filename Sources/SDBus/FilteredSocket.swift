// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc

/// Passes on what a bus sends, to a connection that doesn't read its socket itself.
@BusActor
final class FilteredSocket {
    /// The socket of the bus; -1 once it is closed.
    private(set) var bus: Int32
    /// The other end of what the connection reads.
    private var outlet: Int32
    private var filter = HeaderFilter()
    private var waiting: ArraySlice<UInt8> = []
    private var buffer = [UInt8](repeating: 0, count: 64 << 10)
    private var isOver = false

    /// Connects to a bus.
    /// - Returns: the socket, and the descriptor for the connection to read, which it then owns; `nil` if the address is
    ///   no local socket's.
    static func connect(to address: String) throws(BusError) -> (FilteredSocket, inlet: Int32)? {
        guard LocalSocket.isAddress(address) else { return nil }
        guard let bus = LocalSocket.connect(to: address) else {
            throw BusError(errno: errno, "connecting to the bus")
        }
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        guard socketpair(AF_UNIX, type, 0, &ends) == 0 else {
            let number = errno
            Glibc.close(bus)
            throw BusError(errno: number, "a pair of sockets")
        }
        return (FilteredSocket(bus, outlet: ends[0]), inlet: ends[1])
    }

    private init(_ bus: Int32, outlet: Int32) { (self.bus, self.outlet) = (bus, outlet) }

    isolated deinit { close() }

    func close() {
        isOver = true
        for descriptor in [bus, outlet] where descriptor >= 0 { Glibc.close(descriptor) }
        (bus, outlet) = (-1, -1)
    }

    /// Whether something has arrived that the connection has not taken yet.
    var hasWaiting: Bool { !waiting.isEmpty }

    /// Passes on some of what has arrived.
    /// - Returns: whether anything was passed on, or the end was.
    func pump() -> Bool {
        if isOver { return false }
        if waiting.isEmpty {
            let count = recv(bus, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            if count < 0, errno == EAGAIN || errno == EINTR { return false }
            guard count > 0, let passed = filter.pass(buffer[..<count]) else { return end() }
            waiting = passed[...]
        }
        let count = waiting.withUnsafeBytes {
            send(outlet, $0.baseAddress, $0.count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
        }
        if count < 0, errno != EAGAIN && errno != EINTR { return end() }
        waiting = waiting.dropFirst(max(0, count))
        return true
    }

    /// Lets the connection find the end.
    private func end() -> Bool {
        isOver = true
        shutdown(outlet, Int32(SHUT_RDWR))
        return true
    }

    /// Processes something, or waits until something arrives.
    func advance(_ connection: OpaquePointer) throws(BusError) {
        if try check(sd_bus_process(connection, nil), "connecting to the bus") > 0 || pump() { return }
        var ready = pollfd(fd: bus, events: Int16(POLLIN), revents: 0)
        if poll(&ready, 1, Self.patience) == 0 { throw BusError(errno: ETIMEDOUT, "connecting to the bus") }
    }

    /// How long the bus may take for each step of a connection, in milliseconds.
    private static let patience: Int32 = 30_000
}
