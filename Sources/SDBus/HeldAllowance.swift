// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc

// What others can have dbus-broker keep for us.
//
// dbus-broker grants each user an allowance of bytes, 512 MiB as it comes, for messages that wait for that user's
// connections. Other users share it: with one of them, that one may fill a third. Its loop reads 2 KiB of each connection
// in a round, and writes 16 messages to one. So two connections that send small calls without a pause fill the third,
// about 80,000 calls, however fast the receiver reads, and everybody's calls wait behind them.
//
// A message that is being sent counts against its own sender's allowance as soon as its header has said how long it
// will be, and the bus touches no memory for it before it comes. Connections of our own that send such a header and no
// more take away what others could fill. They never get a name, and the bus forgets them with us.

/// A part of this process's allowance at the bus that others can't fill, as long as this object is there.
@BusActor
public final class HeldAllowance {
    /// How many bytes are held.
    public private(set) var bytes = 0
    private var sockets: [Int32] = []

    /// What a message may announce; dbus-broker takes 128 MiB.
    private static let largestPiece = 120 << 20
    /// How long the bus may take for an answer, in milliseconds.
    private static let patience: Int32 = 1000

    fileprivate init(_ bytes: Int, at bus: Int32) {
        while self.bytes < bytes {
            let piece = min(bytes - self.bytes, Self.largestPiece)
            guard let socket = Self.connect(like: bus) else { return }
            sockets.append(socket)
            guard Self.announce(piece, on: socket) else { return }
            self.bytes += piece
        }
    }

    isolated deinit {
        for socket in sockets { close(socket) }
    }

    /// Another connection to what a socket is connected to.
    private static func connect(like other: Int32) -> Int32? {
        var storage = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let socket = Glibc.socket(AF_UNIX, type, 0)
        guard socket >= 0 else { return nil }
        let isConnected = withUnsafeMutablePointer(to: &storage) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                getpeername(other, $0, &size) == 0 && Glibc.connect(socket, $0, size) == 0
            }
        }
        if isConnected { return socket }
        close(socket)
        return nil
    }

    /// Sends the beginning of a message, after as much as the bus wants to hear before it.
    ///
    /// - Returns: whether the bus has read it. It hangs up if there is less in the allowance.
    private static func announce(_ bytes: Int, on socket: Int32) -> Bool {
        var header: [UInt8] = [UInt8(ascii: "l"), 4, 1, 1]
        for number in [UInt32(bytes), 1, 0] { withUnsafeBytes(of: number.littleEndian) { header += $0 } }
        let message = Array("\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n".utf8) + header
        guard send(socket, message, message.count, Int32(MSG_NOSIGNAL)) == message.count else { return false }
        var ready = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        var answer: UInt8 = 0
        return poll(&ready, 1, patience) > 0 && recv(socket, &answer, 1, 0) > 0
    }
}

extension BusConnection {
    /// Holds what the bus would let others fill of this process's allowance, but for a rest.
    ///
    /// Only for a process whose user has no other programs on the bus: the allowance is the user's. To be called before
    /// the connection has a name; it blocks for as long as the bus takes to answer a few connections.
    ///
    /// - Parameter rest: how many bytes others may fill together. One of them can send a message of a third of it; each
    ///   user that has filled its share leaves less to the next.
    /// - Returns: `nil` if there is nothing to hold: on a bus other than dbus-broker, on one that doesn't say, where less is
    ///   left already, and where the system grants no memory that it doesn't have.
    public func holdAllowance(leaving rest: Int) async -> HeldAllowance? {
        // An error is the answer of a bus that has no allowance, or doesn't tell us.
        guard let left = try? await allowance(of: geteuid()), left > rest, Self.memoryIsLent else { return nil }
        let bus = sd_bus_get_fd(bus)
        return bus >= 0 ? HeldAllowance(left - rest, at: bus) : nil
    }

    /// Whether the bus gets memory that it asks for and doesn't use. It ends where it gets none.
    private static var memoryIsLent: Bool {
        guard let file = fopen("/proc/sys/vm/overcommit_memory", "re") else { return false }
        defer { fclose(file) }
        return [Int32(UInt8(ascii: "0")), Int32(UInt8(ascii: "1"))].contains(fgetc(file))
    }
}
