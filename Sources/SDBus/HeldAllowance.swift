// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc

// Bounds how much data for us other users can make dbus-broker hold.
//
// dbus-broker grants each user an allowance of bytes, 512 MiB by default, for messages that wait for that user's
// connections. Other users share it; a single one of them may fill a third. The broker's loop reads 2 KiB of each
// connection in a round, and writes 16 messages to one. So two connections that send small calls without a pause fill
// the third, about 80,000 calls, however fast the receiver reads, and everyone's calls wait behind them.
//
// A message that is being sent counts against its own sender's allowance as soon as its header has announced its
// length, and the bus touches no memory for it before it comes. So we open connections that send such a header and no
// more: they use up what others could fill. They never get a name, and the bus forgets them with us.

/// A part of this process's allowance at the bus that others can't fill, as long as this object exists.
@BusActor
package final class HeldAllowance {
    /// The number of bytes that are held.
    package private(set) var bytes = 0
    private var sockets: [Int32] = []

    /// The bytes that a message may announce; dbus-broker accepts 128 MiB.
    private static let largestPiece = 120 << 20
    /// How long to wait for an answer of the bus, in milliseconds.
    private static let patience: Int32 = 1000

    fileprivate init(_ bytes: Int, at bus: Int32) {
        while self.bytes < bytes {
            let piece = min(bytes - self.bytes, Self.largestPiece)
            guard let socket = LocalSocket.connect(like: bus) else { return }
            sockets.append(socket)
            guard Self.announce(piece, on: socket) else { return }
            self.bytes += piece
        }
    }

    isolated deinit {
        for socket in sockets { close(socket) }
    }

    /// Sends the beginning of a message, after the authentication that the bus requires.
    ///
    /// - Returns: whether the bus has read it. It disconnects if the allowance is smaller.
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
    /// Holds what the bus would let others fill of this process's allowance, except for a rest.
    ///
    /// Only for a process whose user has no other programs on the bus, because the allowance is the user's. Call it
    /// before the connection has a name. It blocks for as long as the bus takes to answer a few connections.
    ///
    /// - Parameter rest: how many bytes others may fill together. One of them can send a message of a third of it; each
    ///   user that has filled its share leaves less to the next.
    /// - Returns: `nil` if there is nothing to hold: on a bus other than dbus-broker, on one that doesn't tell, if less
    ///   is left already, and if the system grants no memory that it doesn't have.
    package func holdAllowance(leaving rest: Int) async -> HeldAllowance? {
        // A bus without an allowance answers with an error, as does one that doesn't tell us.
        guard let left = try? await allowance(of: geteuid()), left > rest, Self.memoryIsLent else { return nil }
        let socket = dispatcher.socket
        return socket >= 0 ? HeldAllowance(left - rest, at: socket) : nil
    }

    /// Whether the bus gets memory that it requests but doesn't use. If it gets none, it exits.
    private static var memoryIsLent: Bool {
        guard let file = fopen("/proc/sys/vm/overcommit_memory", "re") else { return false }
        defer { fclose(file) }
        return [Int32(UInt8(ascii: "0")), Int32(UInt8(ascii: "1"))].contains(fgetc(file))
    }
}
