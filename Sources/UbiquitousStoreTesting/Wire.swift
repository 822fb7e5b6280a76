// SPDX-License-Identifier: Apache-2.0

/// Bytes of a message in the wire format.
///
/// See the D-Bus specification, "Marshaling (Wire Format)".
public struct Wire {
    /// The bytes written so far.
    public var bytes: [UInt8] = []

    /// Starts empty.
    public init() {}

    /// Pads to a multiple of a size.
    public mutating func align(_ size: Int) {
        while bytes.count % size != 0 { bytes.append(0) }
    }

    /// Writes a number, aligned to its own size.
    public mutating func number(_ value: some FixedWidthInteger) {
        align(value.bitWidth / 8)
        bytes += withUnsafeBytes(of: value.littleEndian) { Array($0) }
    }

    /// Writes a string or an object path.
    public mutating func string(_ value: String) {
        number(UInt32(value.utf8.count))
        bytes += Array(value.utf8) + [0]
    }

    /// Writes a signature.
    public mutating func signature(_ value: String) {
        bytes += [UInt8(truncatingIfNeeded: value.utf8.count)] + Array(value.utf8) + [0]
    }

    /// Writes an array: its length, then the elements that `write` writes.
    ///
    /// - Parameter alignment: the alignment of an element.
    public mutating func array(alignment: Int, _ write: (inout Wire) -> Void) {
        number(0 as UInt32)
        let length = bytes.count - 4
        align(alignment)
        let start = bytes.count
        write(&self)
        let count = UInt32(bytes.count - start)
        withUnsafeBytes(of: count.littleEndian) { bytes.replaceSubrange(length..<length + 4, with: $0) }
    }

    /// Writes a header field with a string, an object path or a signature.
    mutating func field(_ code: UInt8, _ type: String, _ value: String) {
        align(8)
        bytes.append(code)
        signature(type)
        if type == "g" { signature(value) } else { string(value) }
    }

    /// Writes a header field with a number.
    mutating func field(_ code: UInt8, _ value: UInt32) {
        align(8)
        bytes.append(code)
        signature("u")
        number(value)
    }
}

/// A message to encode. `nil` or empty fields are left out.
public struct WireMessage {
    /// 1 is a call, 2 a reply, 3 an error, 4 a signal.
    public var type: UInt8 = 1
    /// 0x1 if no reply is expected.
    public var flags: UInt8 = 0
    /// The destination.
    public var destination: String?
    /// The object.
    public var path: String?
    /// The interface.
    public var interface: String?
    /// The method or the signal.
    public var member: String?
    /// The error's name.
    public var errorName: String?
    /// The serial number of the call that the message replies to.
    public var replySerial: UInt32?
    /// The signature of the body.
    public var signature = ""
    /// The body.
    public var body: [UInt8] = []
    /// How many file descriptors the message announces.
    public var descriptors: UInt32 = 0
    /// The size in bytes of a header field that no specification knows; 0 leaves it out.
    public var unknownField = 0
    /// The content of an array of bytes in such a field, the first one; empty leaves it out.
    public var hiddenField: [UInt8] = []

    /// Makes an empty call.
    public init() {}

    /// Whether a reply is expected.
    public var expectsReply: Bool { type == 1 && flags & 1 == 0 }

    /// Returns the encoded message.
    public func bytes(serial: UInt32) -> [UInt8] {
        var fields = Wire()
        if !hiddenField.isEmpty {
            fields.bytes.append(100)
            fields.signature("ay")
            fields.array(alignment: 1) { $0.bytes += hiddenField }
        }
        for (code, type, value) in [
            (1, "o", path), (2, "s", interface), (3, "s", member), (4, "s", errorName), (6, "s", destination),
            (8, "g", signature.isEmpty ? nil : signature),
        ] as [(UInt8, String, String?)] {
            if let value { fields.field(code, type, value) }
        }
        if let replySerial { fields.field(5, replySerial) }
        if descriptors > 0 { fields.field(9, descriptors) }
        if unknownField > 0 { fields.field(99, "s", String(repeating: "x", count: unknownField)) }
        var message = Wire()
        message.bytes = [UInt8(ascii: "l"), type, flags, 1]
        message.number(UInt32(body.count))
        message.number(serial)
        message.number(UInt32(fields.bytes.count))
        message.bytes += fields.bytes
        message.align(8)
        return message.bytes + body
    }
}
