// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Synchronization

/// A blocking TCP socket on this machine.
final class Socket: Sendable {
    let descriptor: Int32

    init(descriptor: Int32) { self.descriptor = descriptor }

    deinit { Glibc.close(descriptor) }

    /// Wakes up all threads that wait for the socket. The descriptor stays open until the last one lets go of it.
    func end() { shutdown(descriptor, Int32(SHUT_RDWR)) }

    private static func make() throws(SocketError) -> Socket {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw SocketError(errno) }
        return Socket(descriptor: descriptor)
    }

    /// Listens on a port of 127.0.0.1; 0 stands for a free one.
    static func listening(on port: UInt16) throws(SocketError) -> (Socket, port: UInt16) {
        let socket = try make()
        var on: Int32 = 1
        setsockopt(socket.descriptor, SOL_SOCKET, SO_REUSEADDR, &on, 4)
        var address = loopback(port)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withSockaddr(&address) { bind(socket.descriptor, $0, length) }
        guard result == 0, listen(socket.descriptor, 64) == 0 else { throw SocketError(errno) }
        _ = withSockaddr(&address) { getsockname(socket.descriptor, $0, &length) }
        return (socket, UInt16(bigEndian: address.sin_port))
    }

    /// Returns a port for a server that is about to start. It is below those that the kernel chooses from, so that no
    /// connection takes it first. No two servers of this process get the same.
    static func freePort() throws(SocketError) -> UInt16 {
        for _ in 0..<100 {
            let port = UInt16.random(in: 15_000..<32_000)
            let isNew = given.withLock { $0.insert(port).inserted }
            guard isNew, let (socket, _) = try? listening(on: port) else { continue }
            socket.end()
            return port
        }
        throw SocketError(EADDRINUSE)
    }

    private static let given = Mutex<Set<UInt16>>([])

    static func connected(to port: UInt16) throws(SocketError) -> Socket {
        let socket = try make()
        var address = loopback(port)
        let result = withSockaddr(&address) {
            connect(socket.descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
        guard result == 0 else { throw SocketError(errno) }
        return socket
    }

    private static func loopback(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }

    private static func withSockaddr(
        _ address: inout sockaddr_in, _ body: (UnsafeMutablePointer<sockaddr>) -> Int32
    ) -> Int32 {
        withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1, body)
        }
    }

    /// Makes the system buffer little of what the other side sends.
    func keepsLittle() {
        var bytes: Int32 = 64 << 10
        setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &bytes, 4)
    }

    func accept() -> Socket? {
        let connection = Glibc.accept(descriptor, nil, nil)
        return connection < 0 ? nil : Socket(descriptor: connection)
    }

    /// Reads the next bytes; empty at the end.
    func read() -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        return count > 0 ? Array(buffer[..<count]) : []
    }

    @discardableResult
    func write(_ bytes: [UInt8]) -> Bool {
        var bytes = bytes[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            if count <= 0 { return false }
            bytes = bytes.dropFirst(count)
        }
        return true
    }
}

/// An error of a socket.
public struct SocketError: Error, CustomStringConvertible {
    /// The system's message.
    public let description: String

    init(_ number: Int32) { description = String(cString: strerror(number)) }
}

/// Runs a closure on a thread of its own, where it may block.
func onThread(_ body: @escaping @Sendable () -> Void) {
    final class Box: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
    var thread = pthread_t()
    let argument = Unmanaged.passRetained(Box(body)).toOpaque()
    let result = pthread_create(
        &thread, nil,
        { argument in
            if let argument { Unmanaged<Box>.fromOpaque(argument).takeRetainedValue().body() }
            return nil
        }, argument)
    if result == 0 { pthread_detach(thread) }
}
