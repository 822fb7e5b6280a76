// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import StoreBus
import Testing
import UbiquitousStoreTesting

/// A client that speaks the bus's protocol by hand: it sends what libraries don't send, and reads when it likes.
///
/// D-Bus Specification, "Message Format" and "Authentication Protocol".
final class RawClient {
    private var descriptor: Int32
    private var serial: UInt32 = 0

    init(_ bus: PrivateBus) throws {
        descriptor = socket(AF_UNIX, 1, 0)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let path = bus.address.dropFirst("unix:path=".count)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let descriptor = descriptor
        let result = withUnsafePointer(to: address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        try #require(result == 0)
        let uid = "\(geteuid())".utf8.map { String($0, radix: 16) }.joined()
        send(Array("\0AUTH EXTERNAL \(uid)\r\n".utf8))
        _ = receive()
        send(Array("BEGIN\r\n".utf8))
        call("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "Hello")
        _ = receive()
    }

    deinit {
        end()
    }

    /// Breaks the connection off.
    func end() {
        guard descriptor >= 0 else { return }
        defer { descriptor = -1 }
        shutdown(descriptor, Int32(SHUT_RDWR))
        close(descriptor)
    }

    /// Whether the other end has closed the connection; what it has sent is thrown away.
    func isClosed() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            if count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR) { return true }
            if count < 0 { return false }
        }
    }

    /// What has come by now, at least a byte; nothing if the connection is closed.
    func receive() -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: 65536)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        return count > 0 ? Array(buffer[..<count]) : []
    }

    /// Sends a method call and doesn't wait.
    func call(
        _ destination: String,
        _ path: String,
        _ interface: String,
        _ member: String,
        signature: String = "",
        body: [UInt8] = []
    ) {
        serial += 1
        var fields = Wire()
        fields.field(1, "o", path)
        fields.field(2, "s", interface)
        fields.field(3, "s", member)
        fields.field(6, "s", destination)
        if !signature.isEmpty { fields.field(8, "g", signature) }
        var message = Wire()
        message.bytes = [UInt8(ascii: "l"), 1, 0, 1]
        message.number(UInt32(body.count))
        message.number(serial)
        message.number(UInt32(fields.bytes.count))
        message.bytes += fields.bytes
        message.align(8)
        send(message.bytes + body)
    }

    /// Calls a store's method.
    func store(_ path: String, _ member: String, signature: String = "", body: [UInt8] = []) {
        call(BusNames.service, path, BusNames.storeInterface, member, signature: signature, body: body)
    }

    private func send(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }
}

/// Bytes of a message.
struct Wire {
    var bytes: [UInt8] = []

    mutating func align(_ size: Int) {
        while bytes.count % size != 0 { bytes.append(0) }
    }

    mutating func number(_ value: UInt32) {
        align(4)
        bytes += withUnsafeBytes(of: value.littleEndian) { Array($0) }
    }

    mutating func number(_ value: UInt64) {
        align(8)
        bytes += withUnsafeBytes(of: value.littleEndian) { Array($0) }
    }

    mutating func string(_ value: String) {
        number(UInt32(value.utf8.count))
        bytes += Array(value.utf8) + [0]
    }

    mutating func signature(_ value: String) {
        bytes += [UInt8(value.utf8.count)] + Array(value.utf8) + [0]
    }

    mutating func field(_ code: UInt8, _ type: String, _ value: String) {
        align(8)
        bytes.append(code)
        signature(type)
        if type == "g" { signature(value) } else { string(value) }
    }
}
