// SPDX-License-Identifier: Apache-2.0

// Property-list values as D-Bus variants. The table is in dbus/org.example.UbiquitousStore.xml:
// what is sent is always one form of a type, what is taken are several.

public import PropertyList
public import SDBus

extension Message {
    // MARK: Writing

    /// Writes a value as a variant of its canonical form.
    ///
    /// The value has to keep the limit on depth: a message that is nested deeper than the bus allows disconnects
    /// its sender.
    public func append(variant value: Value) throws {
        switch value {
        case .boolean(let value): try container("v", "b") { try append(value) }
        case .integer(let value): try container("v", "x") { try append(value) }
        case .real(let value): try container("v", "d") { try append(value) }
        case .string(let value): try container("v", "s") { try append(value.string) }
        case .data(let value): try container("v", "ay") { try append(bytes: value) }
        case .date(let value):
            try container("v", "(d)") { try container("r", "d") { try append(value) } }
        case .array(let values):
            try container("v", "av") {
                try container("a", "v") {
                    for value in values { try append(variant: value) }
                }
            }
        case .dictionary(let values):
            try container("v", "a{sv}") {
                try appendDictionary {
                    for (key, value) in values { try append(entry: key.string, value) }
                }
            }
        }
    }

    /// Writes an `a{sv}` whose entries `body` writes with ``append(entry:_:)``.
    public func appendDictionary(_ body: () throws -> Void) throws {
        try container("a", "{sv}", body)
    }

    /// Writes an entry of an `a{sv}`.
    public func append(entry key: String, _ value: Value) throws {
        try container("e", "sv") {
            try append(key)
            try append(variant: value)
        }
    }

    // MARK: Reading

    /// Reads a value from a variant, or from a bare type, in any of the forms that are accepted.
    /// - Throws: `InvalidValue` or `DepthExceeded`, with a sentence that says what it was.
    public func readValue(maximumDepth: Int = Limits.standard.depth) throws(BusError) -> Value {
        try readValue(depth: 0, maximumDepth: maximumDepth)
    }

    /// Reads an `a{sv}` of values; a key may not come twice.
    /// - Throws: `InvalidArgs` for a key that comes twice, and what ``readValue(maximumDepth:)`` throws.
    public func readValues(maximumDepth: Int = Limits.standard.depth) throws -> [(key: String, value: Value)] {
        var values: [(key: String, value: Value)] = []
        try readDictionary { key in values.append((key, try readValue(maximumDepth: maximumDepth))) }
        var keys = Set<Text>(minimumCapacity: values.count)
        for (key, _) in values where !keys.insert(Text(key)).inserted {
            throw BusError.invalidArguments("The key \"\(key)\" comes twice")
        }
        return values
    }

    /// `depth` containers are around the value; never more than `maximumDepth`, which bounds the recursion.
    private func readValue(depth: Int, maximumDepth: Int) throws(BusError) -> Value {
        // Variants in variants are unwrapped here and not by recursion: the caller decides how many there are.
        var variants = 0
        var type = try nextType()
        while type == "v" {
            try enterVariant()
            variants += 1
            type = try nextType()
        }
        let value = try readContents(type, depth: depth, maximumDepth: maximumDepth)
        for _ in 0..<variants { try exitContainer() }
        return value
    }

    private func nextType() throws(BusError) -> Unicode.Scalar {
        guard let next = try peekType() else { throw .store(.invalidValue, "A value is missing") }
        return next
    }

    private func readContents(_ type: Unicode.Scalar, depth: Int, maximumDepth: Int) throws(BusError) -> Value {
        switch type {
        case "s": return .string(Text(try readString()))
        case "b": return .boolean(try readBool())
        case "x": return .integer(try readInt64())
        case "d": return .real(try readDouble())
        case "y": return .integer(Int64(try readByte()))
        case "n": return .integer(Int64(try readInt16()))
        case "q": return .integer(Int64(try readUInt16()))
        case "i": return .integer(Int64(try readInt32()))
        case "u": return .integer(Int64(try readUInt32()))
        case "t": return .integer(try readLargeInteger())
        case "r": return .date(try readDate())
        case "a": return try readArray(depth: depth, maximumDepth: maximumDepth)
        default: throw notAValue(String(type))
        }
    }

    /// Reads what an array is to us: data, a dictionary or an array.
    private func readArray(depth: Int, maximumDepth: Int) throws(BusError) -> Value {
        let contents = try peekContents()
        if contents == "y" { return .data(try readBytes()) }
        try checkElements(contents)
        guard depth < maximumDepth else {
            throw .store(.depthExceeded, "A value may have \(maximumDepth) containers around it, and this has more")
        }
        return contents.first == "{"
            ? try readDictionary(contents, depth: depth + 1, maximumDepth: maximumDepth)
            : try readArray(contents, depth: depth + 1, maximumDepth: maximumDepth)
    }

    private func readLargeInteger() throws(BusError) -> Int64 {
        let number = try readUInt64()
        guard let integer = Int64(exactly: number) else {
            throw .store(.invalidValue, "An integer can be \(Int64.max) at most, and this is \(number)")
        }
        return integer
    }

    private func readDate() throws(BusError) -> Double {
        let contents = try peekContents()
        guard contents == "d" else { throw notAValue("(\(contents))") }
        _ = try enterContainer("r", "d")
        let seconds = try readDouble()
        try exitContainer()
        guard seconds.isFinite else {
            throw .store(.invalidValue, "A date is a finite number of seconds since 2001, and this is \(seconds)")
        }
        return seconds
    }

    private func readArray(_ contents: String, depth: Int, maximumDepth: Int) throws(BusError) -> Value {
        var values: [Value] = []
        _ = try enterContainer("a", contents)
        while try !isAtEnd(whole: false) {
            values.append(try readValue(depth: depth, maximumDepth: maximumDepth))
        }
        try exitContainer()
        return .array(values)
    }

    private func readDictionary(_ contents: String, depth: Int, maximumDepth: Int) throws(BusError) -> Value {
        var values: [Text: Value] = [:]
        let entry = String(contents.dropFirst().dropLast())
        _ = try enterContainer("a", contents)
        while try enterContainer("e", entry) {
            let key = Text(try readString())
            let value = try readValue(depth: depth, maximumDepth: maximumDepth)
            guard values.updateValue(value, forKey: key) == nil else {
                throw .store(.invalidValue, "A dictionary has the key \"\(key)\" twice")
            }
            try exitContainer()
        }
        try exitContainer()
        return .dictionary(values)
    }

    /// Refuses an element type that can't be in a value even where there is no element.
    private func checkElements(_ contents: String) throws(BusError) {
        var rest = Array(contents.utf8)[...]
        while let code = rest.popFirst() {
            switch Character(Unicode.Scalar(code)) {
            case "o", "g", "h": throw notAValue("a" + contents)
            // The one struct is a date, and the keys of dictionaries are strings.
            case "(" where !rest.starts(with: "d)".utf8): throw notAValue("a" + contents)
            case "{" where rest.first != UInt8(ascii: "s"): throw notAValue("a" + contents)
            default: break
            }
        }
    }

    private func notAValue(_ type: String) -> BusError {
        .store(
            .invalidValue,
            "A value of the D-Bus type \"\(type)\" is no property list; use b, x, d, s, ay, (d), av or a{sv}")
    }
}
