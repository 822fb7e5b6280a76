// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Foundation
internal import Glibc
internal import Synchronization

/// Unix sockets.
enum UnixSocket {
    /// The numbers of SOCK_STREAM and SOCK_DGRAM, whose Swift types depend on what else is imported.
    enum Kind: Int32 {
        case stream = 1
        case datagrams
    }

    static func address(_ path: String) -> sockaddr_un {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
        return address
    }

    static func call(_ function: (UnsafePointer<sockaddr>, socklen_t) -> Int32, _ path: String) -> Bool {
        let address = address(path)
        return withUnsafePointer(to: address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                function($0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
            }
        }
    }

    static func open(_ type: Kind) -> Int32 {
        let descriptor = socket(AF_UNIX, type.rawValue, 0)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        return descriptor
    }

    static func canConnect(_ path: String) -> Bool {
        let descriptor = open(.stream)
        defer { close(descriptor) }
        return call({ connect(descriptor, $0, $1) }, path)
    }
}

/// The service manager's end of `$NOTIFY_SOCKET`.
final class NotifySocket: Sendable {
    let path: String
    private let descriptor: Int32
    private let lines = Mutex<[String]>([])

    init(_ path: String) throws {
        self.path = path
        let descriptor = UnixSocket.open(.datagrams)
        self.descriptor = descriptor
        guard UnixSocket.call({ bind(descriptor, $0, $1) }, path) else {
            throw StartFailure(description: "\(path) can't be bound: \(String(cString: strerror(errno)))")
        }
        chmod(path, 0o777)
    }

    deinit {
        close(descriptor)
    }

    /// The received assignments, in order.
    var received: [String] {
        lines.withLock { lines in
            var buffer = [UInt8](repeating: 0, count: 4096)
            while true {
                let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
                if count < 0 && errno == EINTR { continue }
                guard count > 0 else { return lines }
                lines += String(decoding: buffer[..<count], as: UTF8.self).split(separator: "\n").map(String.init)
            }
        }
    }

    /// Discards the received assignments.
    func forget() {
        _ = received
        lines.withLock { $0 = [] }
    }
}

/// A substitute for the journal's socket. It reads and discards everything, so that writers don't block.
final class JournalSocket: Sendable {
    private let descriptor: Int32

    init(_ path: String) throws {
        let descriptor = UnixSocket.open(.datagrams)
        self.descriptor = descriptor
        guard UnixSocket.call({ bind(descriptor, $0, $1) }, path) else {
            close(descriptor)
            throw StartFailure(description: "\(path) can't be bound: \(String(cString: strerror(errno)))")
        }
        Thread.detachNewThread {
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            while recv(descriptor, &buffer, buffer.count, 0) > 0 {}
            close(descriptor)
        }
    }

    deinit {
        shutdown(descriptor, Int32(SHUT_RDWR))
    }
}
