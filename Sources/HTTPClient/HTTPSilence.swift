// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Detects a connection on which no data moves, as opposed to a slow one.
///
/// It asks the kernel, because on a slow line data that libcurl has written may wait in the kernel for seconds.
struct HTTPSilence {
    private let limit: Duration
    private var socket: Int32?
    private var counts: [UInt64] = []
    private var quietLooks = 0

    private static let looks = 4

    /// - Parameter limit: how long a connection may be silent.
    init(limit: Duration) { self.limit = limit }

    /// The time between two checks.
    var interval: Duration { limit / Self.looks }

    /// Checks whether the silence has lasted too long.
    /// - Parameter socket: the socket in use; `nil` while there is none.
    mutating func hasLasted(on socket: Int32?) -> Bool {
        let counts = socket.map(Self.counts) ?? []
        quietLooks = socket == self.socket && counts == self.counts ? quietLooks + 1 : 0
        (self.socket, self.counts) = (socket, counts)
        return quietLooks >= Self.looks
    }

    /// The bytes that the other side has acknowledged, and those it has sent: the fields at 120 and 128 of TCP_INFO
    /// (tcp(7), linux/tcp.h). glibc declares only the fields before them.
    private static func counts(of socket: Int32) -> [UInt64] {
        var info = [UInt64](repeating: 0, count: 32)
        var size = socklen_t(info.count * 8)
        guard getsockopt(socket, Int32(IPPROTO_TCP), TCP_INFO, &info, &size) == 0 else { return [] }
        return [info[15], info[16]]
    }
}
