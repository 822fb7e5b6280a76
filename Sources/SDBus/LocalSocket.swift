// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Connections to local sockets.
enum LocalSocket {
    /// Opens another connection to the peer of a local socket; `nil` if that fails, with the reason in `errno`.
    static func connect(like other: Int32) -> Int32? {
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
        let number = errno
        close(socket)
        errno = number
        return nil
    }

    /// Whether a socket is a local one.
    static func isLocal(_ socket: Int32) -> Bool {
        var (domain, size): (Int32, socklen_t) = (0, 4)
        return getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX
    }
}
