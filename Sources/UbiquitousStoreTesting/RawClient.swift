// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc

/// A client that speaks the bus's protocol directly: it can send what libraries don't, and read when it likes.
///
/// See the D-Bus specification, "Message Format" and "Authentication Protocol".
public final class RawClient {
    private var descriptor: Int32
    private var serial: UInt32 = 0
    private var received: ArraySlice<UInt8> = []
    private var unsent: ArraySlice<UInt8> = []

    /// Connects to a bus.
    ///
    /// - Parameter user: the user to connect as; only root may choose another.
    /// - Throws: ``StartFailure``.
    public convenience init(_ bus: PrivateBus, as user: UInt32? = nil) throws {
        try self.init(address: bus.address, as: user)
    }

    /// Connects to a bus of another process, whose address is `unix:path=` and a path.
    ///
    /// - Throws: ``StartFailure``.
    public init(address: String, as user: UInt32? = nil) throws {
        descriptor = UnixSocket.open(.stream)
        let descriptor = descriptor
        let isConnected = try ThreadUser.become(user) {
            UnixSocket.call({ connect(descriptor, $0, $1) }, String(address.dropFirst("unix:path=".count)))
        }
        guard isConnected else { throw StartFailure(description: "\(address) can't be connected to") }
        let uid = "\(user ?? geteuid())".utf8.map { String($0, radix: 16) }.joined()
        send(Array("\0AUTH EXTERNAL \(uid)\r\n".utf8))
        _ = receive()
        send(Array("NEGOTIATE_UNIX_FD\r\n".utf8))
        _ = receive()
        send(Array("BEGIN\r\n".utf8))
        call("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "Hello")
        _ = receive()
    }

    deinit {
        end()
    }

    /// Closes the connection.
    public func end() {
        guard descriptor >= 0 else { return }
        defer { descriptor = -1 }
        shutdown(descriptor, Int32(SHUT_RDWR))
        close(descriptor)
    }

    /// Ends the conversation, as seen from both ends. May be called while another thread sends.
    public func hangUp() {
        shutdown(descriptor, Int32(SHUT_RDWR))
    }

    /// Whether the other end has closed the connection. Discards what it has sent.
    public func isClosed() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            if count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR) { return true }
            if count < 0 { return false }
        }
    }

    /// Waits for at least one byte, and returns what has arrived; nothing if the connection is closed.
    public func receive() -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: 65536)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        return count > 0 ? Array(buffer[..<count]) : []
    }

    /// Returns the next message's serial number. Each is used once.
    public func nextSerial() -> UInt32 {
        serial += 1
        return serial
    }

    /// Sends any bytes, and waits until the socket has accepted them.
    public func send(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

    /// Sends a message together with file descriptors, all at once, and waits until the socket has accepted it.
    ///
    /// - Parameter descriptors: at most 253; they stay the caller's.
    public func send(_ bytes: [UInt8], with descriptors: [Int32]) {
        // cmsg(3): a header of 16 bytes, and what it announces.
        let length = 16 + 4 * descriptors.count
        var control = [UInt64(length), UInt64(UInt32(SOL_SOCKET)) | UInt64(SCM_RIGHTS) << 32]
        for pair in stride(from: 0, to: descriptors.count, by: 2) {
            let second = pair + 1 < descriptors.count ? descriptors[pair + 1] : 0
            control.append(UInt64(UInt32(descriptors[pair])) | UInt64(UInt32(second)) << 32)
        }
        var bytes = bytes
        bytes.withUnsafeMutableBytes { bytes in
            control.withUnsafeMutableBytes { control in
                var piece = iovec(iov_base: bytes.baseAddress, iov_len: bytes.count)
                withUnsafeMutablePointer(to: &piece) { piece in
                    var message = msghdr()
                    (message.msg_iov, message.msg_iovlen) = (piece, 1)
                    (message.msg_control, message.msg_controllen) = (control.baseAddress, control.count)
                    sendmsg(descriptor, &message, Int32(MSG_NOSIGNAL))
                }
            }
        }
    }

    // MARK: Without waiting

    /// Queues bytes, which ``turn(waiting:)`` sends when there is room.
    public func enqueue(_ bytes: [UInt8]) { unsent += bytes }

    /// The number of queued bytes.
    public var unsentCount: Int { unsent.count }

    /// Sends and receives what is possible without blocking.
    ///
    /// - Parameters:
    ///   - milliseconds: how long to wait until something is possible.
    ///   - answersCalls: whether to answer calls. Libraries don't while they wait for the answer to their own.
    /// - Returns: the messages that have arrived, except calls, which get an empty reply; `nil` if the other end has
    ///   closed the connection.
    public func turn(waiting milliseconds: Int32, answersCalls: Bool = true) -> [WireReply]? {
        var ready = pollfd(fd: descriptor, events: Int16(unsent.isEmpty ? POLLIN : POLLIN | POLLOUT), revents: 0)
        guard poll(&ready, 1, milliseconds) >= 0 || errno == EINTR else { return nil }
        guard sendSome(), receiveSome() else { return nil }
        var replies: [WireReply] = []
        while let reply = WireReply(from: &received) { replies.append(reply) }
        if received.isEmpty { received = [] }
        for call in replies where call.type == 1 && answersCalls { answer(call) }
        return replies.filter { $0.type != 1 }
    }

    /// Answers a service that asks whether the client is alive, as every library does by itself.
    private func answer(_ call: WireReply) {
        var message = WireMessage()
        (message.type, message.flags) = (2, 1)
        (message.destination, message.replySerial) = (call.sender, call.serial)
        enqueue(message.bytes(serial: nextSerial()))
    }

    private func sendSome() -> Bool {
        while !unsent.isEmpty {
            let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
            let count = unsent.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, flags) }
            if count < 0 { return errno == EAGAIN || errno == EINTR }
            unsent = unsent.dropFirst(count)
        }
        unsent = []
        return true
    }

    private func receiveSome() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 1 << 18)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            if count == 0 { return false }
            if count < 0 { return errno == EAGAIN || errno == EINTR }
            received += buffer[..<count]
        }
    }
}
