// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc

/// Writing. After an error, the message is unusable and can only be dropped.
extension Message {
    /// Appends a string.
    ///
    /// - Throws: ``BusError`` (InvalidArgs) if it contains U+0000, which D-Bus can't carry.
    ///
    /// The corresponding C function is ``sd_bus_message_append_string_space``: ``sd_bus_message_append_basic`` would
    /// end the string at a U+0000, and search for it twice.
    public func append(_ value: String) throws(BusError) {
        var value = value
        // A native string's UTF-8 is contiguous already, so it is copied only into the message.
        try grow(alignment: 4, by: value.utf8.count + 5)
        let result = value.withUTF8 { append(utf8: $0) }
        try check(result, "writing a string")
    }

    private func append(utf8: UnsafeBufferPointer<UInt8>) -> Int32 {
        if let start = utf8.baseAddress, memchr(start, 0, utf8.count) != nil { return -EINVAL }
        var space: UnsafeMutablePointer<CChar>?
        let result = sd_bus_message_append_string_space(message, utf8.count, &space)
        guard result >= 0, let space, let start = utf8.baseAddress else { return result }
        memcpy(space, start, utf8.count)
        return result
    }

    /// Appends a boolean.
    /// - Throws: ``BusError``: InvalidArgs if it doesn't belong here, LimitsExceeded if the message becomes too large.
    public func append(_ value: Bool) throws(BusError) {
        // 'b' is a C int for sd-bus.
        try appendBasic("b", value ? 1 : 0 as Int32)
    }

    /// Appends a byte (`y`).
    /// - Throws: ``BusError``: InvalidArgs if it doesn't belong here, LimitsExceeded if the message becomes too large.
    public func append(_ value: UInt8) throws(BusError) { try appendBasic("y", value) }
    /// Appends an Int16 (`n`).
    /// - Throws: ``BusError``: InvalidArgs if it doesn't belong here, LimitsExceeded if the message becomes too large.
    public func append(_ value: Int16) throws(BusError) { try appendBasic("n", value) }
    /// Appends a UInt16 (`q`).
    /// - Throws: ``BusError``: InvalidArgs if it doesn't belong here, LimitsExceeded if the message becomes too large.
    public func append(_ value: UInt16) throws(BusError) { try appendBasic("q", value) }
    /// Appends an Int32 (`i`).
    /// - Throws: ``BusError``: InvalidArgs if it doesn't belong here, LimitsExceeded if the message becomes too large.
    public func append(_ value: Int32) throws(BusError) { try appendBasic("i", value) }
    /// Appends a UInt32 (`u`).
    /// - Throws: ``BusError``: InvalidArgs if it doesn't belong here, LimitsExceeded if the message becomes too large.
    public func append(_ value: UInt32) throws(BusError) { try appendBasic("u", value) }
    /// Appends an Int64 (`x`).
    /// - Throws: ``BusError``: InvalidArgs if it doesn't belong here, LimitsExceeded if the message becomes too large.
    public func append(_ value: Int64) throws(BusError) { try appendBasic("x", value) }
    /// Appends a UInt64 (`t`).
    /// - Throws: ``BusError``: InvalidArgs if it doesn't belong here, LimitsExceeded if the message becomes too large.
    public func append(_ value: UInt64) throws(BusError) { try appendBasic("t", value) }
    /// Appends a Double (`d`).
    /// - Throws: ``BusError``: InvalidArgs if it doesn't belong here, LimitsExceeded if the message becomes too large.
    public func append(_ value: Double) throws(BusError) { try appendBasic("d", value) }

    @inline(__always)
    private func appendBasic<Value: BitwiseCopyable>(_ type: Unicode.Scalar, _ value: Value) throws(BusError) {
        var value = value
        try grow(alignment: MemoryLayout<Value>.size, by: MemoryLayout<Value>.size)
        try check(
            sd_bus_message_append_basic(message, CChar(truncatingIfNeeded: type.value), &value),
            "writing a value"
        )
    }

    /// Appends an object path (`o`).
    ///
    /// - Throws: ``BusError`` (InvalidArgs) if it is invalid.
    public func append(objectPath path: String) throws(BusError) {
        guard !path.utf8.contains(0) else { throw .invalidArguments("An object path can't have a U+0000.") }
        try grow(alignment: 4, by: path.utf8.count + 5)
        try check(sd_bus_message_append_basic(message, .objectPath, path), "writing an object path")
    }

    /// Appends a signature (`g`).
    ///
    /// - Throws: ``BusError`` (InvalidArgs) if it is invalid.
    public func append(signature: String) throws(BusError) {
        guard !signature.utf8.contains(0) else { throw .invalidArguments("A signature can't have a U+0000.") }
        try grow(alignment: 1, by: signature.utf8.count + 2)
        try check(sd_bus_message_append_basic(message, .signature, signature), "writing a signature")
    }

    /// Appends an array of bytes (`ay`) at once.
    ///
    /// - Throws: ``BusError``: InvalidArgs if it doesn't belong here, LimitsExceeded if the message becomes too large.
    ///
    /// The corresponding C function is ``sd_bus_message_append_array``.
    public func append(bytes: UnsafeRawBufferPointer) throws(BusError) {
        try grow(alignment: 4, by: bytes.count + 4)
        try check(sd_bus_message_append_array(message, .byte, bytes.baseAddress, bytes.count), "writing bytes")
    }

    /// Appends an array of bytes (`ay`) at once.
    /// - Throws: ``BusError``: InvalidArgs if it doesn't belong here, LimitsExceeded if the message becomes too large.
    public func append(bytes: [UInt8]) throws(BusError) {
        try grow(alignment: 4, by: bytes.count + 4)
        let result = bytes.withUnsafeBytes { sd_bus_message_append_array(message, .byte, $0.baseAddress, $0.count) }
        try check(result, "writing bytes")
    }

    /// Appends an array of strings (`as`).
    ///
    /// - Throws: ``BusError`` (InvalidArgs) if one contains U+0000.
    public func append(strings: some Sequence<String>) throws(BusError) {
        try openContainer("a", contents: ("s" as StaticString).cString)
        for string in strings { try append(string) }
        try closeContainer()
    }

    /// Appends an array (`a`), variant (`v`), struct (`r`) or dictionary entry (`e`), whose contents `body` writes.
    ///
    /// - Parameter contents: the signature after the `a`, or within the parentheses or braces.
    /// - Throws: ``BusError`` if `body` writes something else; what `body` throws.
    ///
    /// The corresponding C functions are ``sd_bus_message_open_container`` and ``sd_bus_message_close_container``.
    public func container(_ type: Unicode.Scalar, _ contents: StaticString, _ body: () throws -> Void) throws {
        try openContainer(type, contents: contents.cString)
        try body()
        try closeContainer()
    }

    /// Appends a container, as the other function of this name does, if the contents are known only at run time.
    /// - Throws: ``BusError`` if `contents` is no signature or `body` writes something else; what `body` throws.
    @_disfavoredOverload
    public func container(_ type: Unicode.Scalar, _ contents: String, _ body: () throws -> Void) throws {
        try contents.withCString { try openContainer(type, contents: $0) }
        try body()
        try closeContainer()
    }

    private func openContainer(_ type: Unicode.Scalar, contents: UnsafePointer<CChar>) throws(BusError) {
        switch type {
        case "v": try grow(alignment: 1, by: strlen(contents) + 2)
        case "a":
            try grow(alignment: 4, by: 4)
            try grow(alignment: Self.alignment(contents.pointee), by: 0)
        default: try grow(alignment: 8, by: 0)
        }
        try check(sd_bus_message_open_container(message, type.code, contents), "writing a container")
    }

    private func closeContainer() throws(BusError) {
        try check(sd_bus_message_close_container(message), "writing a container to its end")
    }

    /// Copies what is next in another message: one value, or all that is left.
    ///
    /// - Returns: false if nothing is left.
    /// - Throws: ``BusError`` (InvalidArgs) if the other message is malformed, or the value doesn't belong here.
    ///
    /// The corresponding C function is ``sd_bus_message_copy``.
    @discardableResult
    public func append(from other: Message, all: Bool = false) throws(BusError) -> Bool {
        try check(sd_bus_message_copy(message, other.message, all ? 1 : 0), "copying a value") > 0
    }

    // MARK: Size

    /// Counts the bytes about to be written, as the D-Bus Specification marshals them.
    @inline(__always)
    private func grow(alignment: Int, by count: Int) throws(BusError) {
        size = (size + alignment - 1) & ~(alignment - 1) + count
        if size > limit { throw tooLarge }
    }

    @inline(never)
    private var tooLarge: BusError {
        .limitsExceeded("The answer would have more than \(limit >> 20) MiB. Ask for a part of it at a time.")
    }

    /// Returns the alignment of the elements of an array of this type, in bytes.
    private static func alignment(_ type: CChar) -> Int {
        switch UInt8(bitPattern: type) {
        case UInt8(ascii: "y"), UInt8(ascii: "g"), UInt8(ascii: "v"): 1
        case UInt8(ascii: "n"), UInt8(ascii: "q"): 2
        case UInt8(ascii: "x"), UInt8(ascii: "t"), UInt8(ascii: "d"), UInt8(ascii: "("), UInt8(ascii: "{"): 8
        default: 4
        }
    }
}
