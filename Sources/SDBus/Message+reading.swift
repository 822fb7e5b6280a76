// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc

/// Reading. If a message isn't as expected, the error is InvalidArgs, because it is the sender's mistake.
extension Message {
    /// Reads a string, an object path or a signature, whichever is next. The result is always valid UTF-8.
    ///
    /// libsystemd accepts no noncharacters (such as U+FFFF) in what it reads.
    ///
    /// - Parameters:
    ///   - maximum: the largest length, in bytes of UTF-8. What compares or searches a text by characters takes time that
    ///     grows with the square of its length, so names are bounded here.
    ///   - error: the error for a longer text; `nil` is InvalidArgs.
    /// - Throws: ``BusError`` if something else is next, or nothing, or not UTF-8, or a longer text.
    ///
    /// The corresponding C function is ``sd_bus_message_read_basic``.
    public func readString(
        atMost maximum: Int = .max, orThrow error: @autoclosure () -> BusError? = nil
    ) throws(BusError) -> String {
        var value: UnsafePointer<CChar>?
        var result = sd_bus_message_read_basic(message, .string, &value)
        if result == -ENXIO { result = readOtherString(&value) }
        guard try checkString(result) > 0, let value else { throw missing("a string") }
        guard maximum == .max || strnlen(value, maximum + 1) <= maximum else {
            throw error() ?? .invalidArguments("A text of the call is longer than \(maximum) bytes.")
        }
        return String(cString: value)
    }

    /// Checks the result of reading a string.
    @inline(__always)
    @discardableResult
    func checkString(_ result: Int32) throws(BusError) -> Int32 {
        if result == -EBADMSG {
            throw .invalidArguments(
                "A string contains a noncharacter, such as U+FFFF, or isn't UTF-8; store such text as bytes.")
        }
        return try check(result, "reading a string")
    }

    /// Reads an object path or a signature.
    private func readOtherString(_ value: inout UnsafePointer<CChar>?) -> Int32 {
        var type: CChar = 0
        let result = sd_bus_message_peek_type(message, &type, nil)
        guard result > 0 else { return result }
        return type == .objectPath || type == .signature ? sd_bus_message_read_basic(message, type, &value) : -ENXIO
    }

    /// Reads a boolean.
    /// - Throws: ``BusError`` (InvalidArgs) if something else is next, or nothing.
    public func readBool() throws(BusError) -> Bool {
        // 'b' is a C int for sd-bus.
        try readBasic("b", Int32(0)) != 0
    }

    /// Reads a byte (`y`).
    /// - Throws: ``BusError`` (InvalidArgs) if something else is next, or nothing.
    public func readByte() throws(BusError) -> UInt8 { try readBasic("y", 0) }
    /// Reads an Int16 (`n`).
    /// - Throws: ``BusError`` (InvalidArgs) if something else is next, or nothing.
    public func readInt16() throws(BusError) -> Int16 { try readBasic("n", 0) }
    /// Reads a UInt16 (`q`).
    /// - Throws: ``BusError`` (InvalidArgs) if something else is next, or nothing.
    public func readUInt16() throws(BusError) -> UInt16 { try readBasic("q", 0) }
    /// Reads an Int32 (`i`).
    /// - Throws: ``BusError`` (InvalidArgs) if something else is next, or nothing.
    public func readInt32() throws(BusError) -> Int32 { try readBasic("i", 0) }
    /// Reads a UInt32 (`u`).
    /// - Throws: ``BusError`` (InvalidArgs) if something else is next, or nothing.
    public func readUInt32() throws(BusError) -> UInt32 { try readBasic("u", 0) }
    /// Reads an Int64 (`x`).
    /// - Throws: ``BusError`` (InvalidArgs) if something else is next, or nothing.
    public func readInt64() throws(BusError) -> Int64 { try readBasic("x", 0) }
    /// Reads a UInt64 (`t`).
    /// - Throws: ``BusError`` (InvalidArgs) if something else is next, or nothing.
    public func readUInt64() throws(BusError) -> UInt64 { try readBasic("t", 0) }
    /// Reads a Double (`d`).
    /// - Throws: ``BusError`` (InvalidArgs) if something else is next, or nothing.
    public func readDouble() throws(BusError) -> Double { try readBasic("d", 0) }

    @inline(__always)
    private func readBasic<Value: BitwiseCopyable>(_ type: Unicode.Scalar, _ initial: Value) throws(BusError) -> Value {
        var value = initial
        let result = sd_bus_message_read_basic(message, CChar(truncatingIfNeeded: type.value), &value)
        guard try check(result, "reading a value") > 0 else { throw missing("a value") }
        return value
    }

    /// Reads an array of bytes (`ay`).
    ///
    /// - Parameters:
    ///   - maximum: the largest number of bytes.
    ///   - error: is thrown if there are more, before they are copied; LimitsExceeded if it is `nil`.
    /// - Throws: ``BusError``.
    ///
    /// The corresponding C function is ``sd_bus_message_read_array``. It refuses a message in the other byte order,
    /// whatever the elements are. Then the bytes are read one by one.
    public func readBytes(
        atMost maximum: Int = .max, orThrow error: @autoclosure () -> BusError? = nil
    ) throws(BusError) -> [UInt8] {
        var start: UnsafeRawPointer?
        var count = 0
        let result = sd_bus_message_read_array(message, .byte, &start, &count)
        if result == -EOPNOTSUPP { return try readBytesOneByOne(maximum, error) }
        guard try check(result, "reading bytes") > 0 else { throw missing("bytes") }
        guard count <= maximum else { throw error() ?? tooMany("bytes", maximum) }
        return [UInt8](UnsafeRawBufferPointer(start: start, count: count))
    }

    private func readBytesOneByOne(_ maximum: Int, _ error: () -> BusError?) throws(BusError) -> [UInt8] {
        guard try enterContainer("a", "y") else { throw missing("bytes") }
        var bytes: [UInt8] = []
        while try !isAtEnd(whole: false) {
            guard bytes.count < maximum else { throw error() ?? tooMany("bytes", maximum) }
            bytes.append(try readByte())
        }
        try exitContainer()
        return bytes
    }

    /// Reads an array of strings (`as`).
    ///
    /// - Parameters:
    ///   - maximum: the largest number of strings.
    ///   - bytes: the largest length of each, in bytes.
    /// - Throws: ``BusError``: LimitsExceeded if there are more.
    public func readStrings(atMost maximum: Int = .max, bytes: Int = .max) throws(BusError) -> [String] {
        guard try enterContainer("a", "s") else { throw missing("strings") }
        var strings: [String] = []
        while try !isAtEnd(whole: false) {
            guard strings.count < maximum else { throw tooMany("strings", maximum) }
            strings.append(try readString(atMost: bytes))
        }
        try exitContainer()
        return strings
    }

    private func tooMany(_ what: StaticString, _ maximum: Int) -> BusError {
        .limitsExceeded("The message has more than \(maximum) \(what) in one array.")
    }

    /// Reads an array of dictionary entries with string keys, such as `a{sv}`, and calls `body` with each key.
    ///
    /// - Parameters:
    ///   - contents: the signature of an entry, without braces.
    ///   - body: must read the entry's whole value, or ``skip()`` it.
    /// - Throws: ``BusError``, or what `body` throws. Reading can't continue then without ``rewind(whole:)``.
    public func readDictionary(
        _ contents: StaticString = "sv", nameLimit: Int = .max, _ body: (String) throws -> Void
    ) throws {
        guard try enterContainer("a", contents: nil) else { throw missing("a dictionary") }
        while try enterContainer("e", contents) {
            try body(try readString(atMost: nameLimit))
            try exitContainer()
        }
        try exitContainer()
    }

    /// Returns the type that is next; `nil` at the end of the container or message.
    ///
    /// - Throws: ``BusError`` (InvalidArgs) if the message is malformed.
    ///
    /// The corresponding C function is ``sd_bus_message_peek_type``.
    public func peekType() throws(BusError) -> Unicode.Scalar? {
        var type: CChar = 0
        guard try check(sd_bus_message_peek_type(message, &type, nil), "reading a type") > 0 else { return nil }
        return Unicode.Scalar(UInt8(bitPattern: type))
    }

    /// Returns the contents of the next container, as ``enterContainer(_:_:)`` takes them; empty for other types.
    ///
    /// - Throws: ``BusError`` (InvalidArgs) if the message is malformed.
    ///
    /// The corresponding C function is ``sd_bus_message_peek_type``.
    public func peekContents() throws(BusError) -> String {
        var contents: UnsafePointer<CChar>?
        try check(sd_bus_message_peek_type(message, nil, &contents), "reading a type")
        return contents.map { String(cString: $0) } ?? ""
    }

    /// Enters a variant, whatever it contains.
    ///
    /// The corresponding C function is ``sd_bus_message_enter_container``.
    ///
    /// - Returns: false at the end of the container or message around it.
    /// - Throws: ``BusError`` (InvalidArgs) if something else is next.
    @discardableResult
    public func enterVariant() throws(BusError) -> Bool {
        try enterContainer("v", contents: nil)
    }

    /// Enters an array (`a`), variant (`v`), struct (`r`) or dictionary entry (`e`).
    ///
    /// - Parameter contents: what it must contain: the signature after the `a`, or within the parentheses or braces.
    /// - Returns: false at the end of the container or message around it.
    /// - Throws: ``BusError`` if something else is next.
    ///
    /// The corresponding C function is ``sd_bus_message_enter_container``.
    @discardableResult
    public func enterContainer(_ type: Unicode.Scalar, _ contents: StaticString) throws(BusError) -> Bool {
        try enterContainer(type, contents: contents.cString)
    }

    /// Enters a container, as the other function of this name does, if the contents are known only at run time.
    /// - Throws: ``BusError`` (InvalidArgs) if something else is next.
    @_disfavoredOverload
    @discardableResult
    public func enterContainer(_ type: Unicode.Scalar, _ contents: String) throws(BusError) -> Bool {
        let result = contents.withCString { sd_bus_message_enter_container(message, type.code, $0) }
        return try check(result, "reading a container") > 0
    }

    @discardableResult
    func enterContainer(_ type: Unicode.Scalar, contents: UnsafePointer<CChar>?) throws(BusError) -> Bool {
        try check(sd_bus_message_enter_container(message, type.code, contents), "reading a container") > 0
    }

    /// Leaves a container that was entered.
    ///
    /// - Throws: ``BusError`` if something in it hasn't been read.
    ///
    /// The corresponding C function is ``sd_bus_message_exit_container``.
    public func exitContainer() throws(BusError) {
        try check(sd_bus_message_exit_container(message), "reading a container to its end")
    }

    /// Skips the next value, whatever it is.
    ///
    /// - Throws: ``BusError`` (InvalidArgs) if the message ends here, or is malformed.
    ///
    /// The corresponding C function is ``sd_bus_message_skip``.
    public func skip() throws(BusError) {
        try check(sd_bus_message_skip(message, nil), "skipping a value")
    }

    /// Returns whether everything has been read: of the whole message, or of the container entered last.
    ///
    /// - Throws: ``BusError`` if the message is still being written.
    ///
    /// The corresponding C function is ``sd_bus_message_at_end``.
    public func isAtEnd(whole: Bool) throws(BusError) -> Bool {
        try check(sd_bus_message_at_end(message, whole ? 1 : 0), "reading a message") > 0
    }

    /// Starts over: at the beginning of the message, or of the container entered last.
    ///
    /// - Throws: ``BusError`` if the message is still being written.
    ///
    /// The corresponding C function is ``sd_bus_message_rewind``.
    public func rewind(whole: Bool = true) throws(BusError) {
        try check(sd_bus_message_rewind(message, whole ? 1 : 0), "reading a message again")
    }

    private func missing(_ what: StaticString) -> BusError {
        .invalidArguments("The message ends where \(what) should come.")
    }
}
