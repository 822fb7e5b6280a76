// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc

/// The sizes of messages, which libsystemd knows but doesn't tell.
extension Message {
    /// The largest answer or signal, in bytes: half of what the system bus accepts before it disconnects the sender.
    package static let largestAnswer = 16 << 20

    /// The size in bytes that few answers exceed. Each larger one is decided on separately
    /// (``BusConnection/admitLargeAnswer``).
    package static let largeAnswer = 1 << 20

    /// Returns about how many bytes the arguments of an incoming message have; `nil` if they have more than `limit`, or
    /// can't be read.
    ///
    /// It takes no longer than for `limit` bytes, and leaves the message at its beginning.
    package func argumentSize(atMost limit: Int) -> Int? { try? readableArgumentSize(atMost: limit) }

    /// Does the same as ``argumentSize(atMost:)``.
    ///
    /// - Throws: ``BusError`` (InvalidArgs) if the arguments can't be read.
    package func readableArgumentSize(atMost limit: Int) throws(BusError) -> Int? {
        var size = 0
        defer { try? rewind() }
        try measure(&size, limit)
        return size <= limit ? size : nil
    }

    /// Counts what is left of the container entered last, and stops beyond the limit.
    private func measure(_ size: inout Int, _ limit: Int) throws(BusError) {
        while size <= limit, let type = try peekType() {
            // Values are padded to 8 bytes at most.
            size += 8
            switch type {
            case "s", "o", "g": size += try skipString(type)
            case "a": try measureArray(&size, limit)
            case "v", "r", "e":
                try enterContainer(type, contents: nil)
                try measure(&size, limit)
                if size <= limit { try exitContainer() }
            default: try skip()
            }
        }
    }

    private func measureArray(_ size: inout Int, _ limit: Int) throws(BusError) {
        var contents: UnsafePointer<CChar>?
        try check(sd_bus_message_peek_type(message, nil, &contents), "reading a type")
        if let contents, let number = CChar.number(in: contents) {
            var numbers: UnsafeRawPointer?
            var bytes = 0
            if sd_bus_message_read_array(message, number.type, &numbers, &bytes) > 0 {
                // Other numbers count as if each were alone, because values of their own are made of them.
                return size += number.width == 1 ? bytes : bytes / number.width * 8
            }
        }
        try enterContainer("a", contents: nil)
        try measure(&size, limit)
        if size <= limit { try exitContainer() }
    }

    private func skipString(_ type: Unicode.Scalar) throws(BusError) -> Int {
        var value: UnsafePointer<CChar>?
        try checkString(sd_bus_message_read_basic(message, type.code, &value))
        return value.map(strlen) ?? 0
    }
}
