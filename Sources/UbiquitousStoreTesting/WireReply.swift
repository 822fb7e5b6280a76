// SPDX-License-Identifier: Apache-2.0

/// The header of a received message.
public struct WireReply: Equatable, Sendable {
    /// 1 is a call, 2 a reply, 3 an error, 4 a signal.
    public let type: UInt8
    /// The message's own serial number. A sender's later messages have greater ones.
    public let serial: UInt32
    /// The serial number of the call that the message replies to; 0 if it is no reply.
    public private(set) var replySerial: UInt32 = 0
    /// The error's name.
    public private(set) var errorName: String?
    /// The sender, as the bus wrote it.
    public private(set) var sender = ""

    /// Takes the first message off the received bytes; `nil` if it is incomplete.
    ///
    /// The bus sends well-formed messages, in the byte order of this machine.
    init?(from received: inout ArraySlice<UInt8>) {
        guard received.count >= 16 else { return nil }
        let start = received.startIndex
        let (body, fields) = (Self.number(received, at: start + 4), Self.number(received, at: start + 12))
        let head = (16 + fields + 7) / 8 * 8
        guard received.count >= head + body else { return nil }
        type = received[start + 1]
        serial = UInt32(Self.number(received, at: start + 8))
        read(fields: Array(received[start + 16..<start + 16 + fields]))
        received = received[(start + head + body)...]
    }

    private mutating func read(fields: [UInt8]) {
        var at = 0
        func number() -> Int {
            at = (at + 3) / 4 * 4
            defer { at += 4 }
            return Self.number(fields[...], at: at)
        }
        while true {
            at = (at + 7) / 8 * 8
            guard at + 4 < fields.count else { return }
            let (code, type) = (fields[at], fields[at + 2])
            at += 4
            switch type {
            case UInt8(ascii: "u"):
                let value = number()
                if code == 5 { replySerial = UInt32(value) }
            case UInt8(ascii: "g"):
                at += Int(fields[at]) + 2
            default:
                let length = number()
                let text = String(decoding: fields[at..<at + length], as: UTF8.self)
                at += length + 1
                if code == 4 { errorName = text }
                if code == 7 { sender = text }
            }
        }
    }

    private static func number(_ bytes: ArraySlice<UInt8>, at index: Int) -> Int {
        (0..<4).reduce(0) { $0 | Int(bytes[index + $1]) << (8 * $1) }
    }
}
