// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Tells a connection on which something comes or goes, however slowly, from one on which nothing does.
///
/// It is the kernel that knows: what libcurl has written may lie there for seconds where the way is a slow one.
struct HTTPSilence {
    private let limit: Duration
    private var socket: Int32?
    private var counts: [UInt64] = []
    private var quietLooks = 0

    private static let looks = 4

    /// - Parameter limit: for how long nothing may come and go.
    init(limit: Duration) { self.limit = limit }

    /// After so long it is worth looking again.
    var interval: Duration { limit / Self.looks }

    /// Looks whether it has lasted too long.
    /// - Parameter socket: that is used now; `nil` while there is none.
    mutating func hasLasted(on socket: Int32?) -> Bool {
        let counts = socket.map(Self.counts) ?? []
        quietLooks = socket == self.socket && counts == self.counts ? quietLooks + 1 : 0
        (self.socket, self.counts) = (socket, counts)
        return quietLooks >= Self.looks
    }

    /// The bytes that the other side has acknowledged, and those that it has sent: the numbers at 120 and 128 of what
    /// tcp(7) calls TCP_INFO (linux/tcp.h), of which glibc declares only what is before them.
    private static func counts(of socket: Int32) -> [UInt64] {
        var info = [UInt64](repeating: 0, count: 32)
        var size = socklen_t(info.count * 8)
        guard getsockopt(socket, Int32(IPPROTO_TCP), TCP_INFO, &info, &size) == 0 else { return [] }
        return [info[15], info[16]]
    }
}
