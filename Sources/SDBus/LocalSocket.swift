// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc

/// Connections to local sockets.
enum LocalSocket {
    /// Connects to the first of the local sockets in D-Bus addresses that takes the connection; `nil` if none does, with
    /// the reason in `errno`.
    static func connect(to addresses: String) -> Int32? {
        for name in names(in: addresses) {
            if let socket = withAddress(of: name, connect) { return socket }
        }
        return nil
    }

    /// Whether D-Bus addresses name local sockets, and nothing else.
    static func isAddress(_ addresses: String) -> Bool {
        !addresses.isEmpty && names(in: addresses).count == addresses.split(separator: ";").count
    }

    /// Opens another connection to the peer of a local socket; `nil` if that fails.
    static func connect(like other: Int32) -> Int32? {
        var storage = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &storage) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                getpeername(other, $0, &size) == 0 ? connect($0, size) : nil
            }
        }
    }

    private static func connect(_ address: UnsafePointer<sockaddr>, _ size: socklen_t) -> Int32? {
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let socket = Glibc.socket(AF_UNIX, type, 0)
        guard socket >= 0 else { return nil }
        if Glibc.connect(socket, address, size) == 0 { return socket }
        let number = errno
        close(socket)
        errno = number
        return nil
    }

    private static func withAddress(
        of name: [UInt8], _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32?
    ) -> Int32? {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        guard name.count < MemoryLayout.size(ofValue: address.sun_path) else {
            errno = ENAMETOOLONG
            return nil
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        // An abstract name ends where its length says, and a path with a zero.
        let isAbstract = name.first == 0
        let size = MemoryLayout<sa_family_t>.size + name.count + (isAbstract ? 0 : 1)
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(size)) }
        }
    }

    /// Returns the names of the sockets in addresses such as `unix:path=/run/bus;unix:abstract=name`, abstract ones with a
    /// zero before them (D-Bus Specification, "Server Addresses").
    private static func names(in addresses: String) -> [[UInt8]] {
        addresses.split(separator: ";").compactMap { address in
            guard address.hasPrefix("unix:") else { return nil }
            for entry in address.dropFirst("unix:".count).split(separator: ",") {
                if entry.hasPrefix("path=") { return unescaped(entry.utf8.dropFirst("path=".utf8.count)) }
                if entry.hasPrefix("abstract=") {
                    return [0] + unescaped(entry.utf8.dropFirst("abstract=".utf8.count))
                }
            }
            return nil
        }
    }

    private static func unescaped(_ text: Substring.UTF8View) -> [UInt8] {
        var (rest, bytes) = (Array(text)[...], [UInt8]())
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), let code = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) {
                bytes.append(code)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return bytes
    }
}
