// SPDX-License-Identifier: Apache-2.0

// Property-list values as D-Bus variants. The table is in dbus/org.example.UbiquitousStore.xml: each type is sent in
// one form, and accepted in several.

package import PropertyList
package import SDBus

extension Message {
    // MARK: Writing

    /// Writes a value as a variant in its canonical form.
    ///
    /// The value must be within the limit on depth, because the bus disconnects the sender of a message that is nested
    /// too deeply.
    /// - Throws: `BusError`: InvalidArgs if a string contains U+0000, LimitsExceeded if the message becomes too large.
    package func append(variant value: Value) throws {
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
    /// - Throws: what `body` throws; `BusError` if it writes anything else.
    package func appendDictionary(_ body: () throws -> Void) throws {
        try container("a", "{sv}", body)
    }

    /// Writes an entry of an `a{sv}`.
    /// - Throws: `BusError`: InvalidArgs if a string contains U+0000, LimitsExceeded if the message becomes too large.
    package func append(entry key: String, _ value: Value) throws {
        try container("e", "sv") {
            try append(key)
            try append(variant: value)
        }
    }

    // MARK: Reading

    /// Reads a value from a variant or a bare type, in any of the accepted forms.
    /// - Throws: `InvalidValue` or `DepthExceeded`, with a sentence that says what is wrong.
    package func readValue(maximumDepth: Int = Limits.standard.depth) throws(BusError) -> Value {
        var budget = ValueBudget(maximumDepth: maximumDepth)
        return try readValue(&budget)
    }

    /// Reads a value as ``readValue(maximumDepth:)`` does, but within a budget.
    /// - Throws: also `QuotaExceeded` as soon as the budget is spent. Then ``ValueBudget/isExceeded`` is true.
    package func readValue(_ budget: inout ValueBudget) throws(BusError) -> Value {
        budget.beginValue()
        return try readValue(depth: 0, &budget)
    }

    /// Reads an `a{sv}` of values with distinct keys.
    /// - Throws: `InvalidArgs` if a key comes twice, and what ``readValue(maximumDepth:)`` throws.
    package func readValues(maximumDepth: Int = Limits.standard.depth) throws -> [(key: String, value: Value)] {
        var budget = ValueBudget(maximumDepth: maximumDepth)
        var values: [(key: String, value: Value)] = []
        try readValues(into: &values, &budget)
        return values
    }

    /// Reads an `a{sv}` of values as ``readValues(maximumDepth:)`` does, but all of them within one budget.
    /// - Parameter values: receives the values; after a failure, those read before and an entry for the key at fault.
    /// - Throws: `InvalidArgs` if a key comes twice, and what ``readValue(_:)`` throws.
    package func readValues(into values: inout [(key: String, value: Value)], _ budget: inout ValueBudget) throws {
        try readDictionary { key in
            values.append((key, .boolean(false)))
            try budget.spend(0, memory: ValueBudget.container + key.utf8.count)
            values[values.count - 1].value = try readValue(&budget)
        }
        var keys = Set<Text>(minimumCapacity: values.count)
        for (key, _) in values where !keys.insert(Text(key)).inserted {
            throw BusError.invalidArguments("The key \"\(key)\" comes twice.")
        }
    }

    /// `depth` counts the containers around the value. The budget bounds it, and so the recursion.
    private func readValue(depth: Int, _ budget: inout ValueBudget) throws(BusError) -> Value {
        // Nested variants are unwrapped here without recursion, because the caller decides how many there are.
        var variants = 0
        var type = try nextType()
        while type == "v" {
            try enterVariant()
            variants += 1
            type = try nextType()
        }
        let value = try readContents(type, depth: depth, &budget)
        for _ in 0..<variants { try exitContainer() }
        return value
    }

    private func nextType() throws(BusError) -> Unicode.Scalar {
        guard let next = try peekType() else { throw .store(.invalidValue, "A value is missing.") }
        return next
    }

    private func readContents(
        _ type: Unicode.Scalar, depth: Int, _ budget: inout ValueBudget
    ) throws(BusError) -> Value {
        switch type {
        case "s":
            let string = try readString()
            try budget.spend(max(1, string.utf8.count))
            return .string(Text(string))
        case "a": return try readArray(depth: depth, &budget)
        case "b": try budget.spend(1)
        default: try budget.spend(8)
        }
        switch type {
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
        default: throw notAValue(String(type))
        }
    }

    /// Reads an array in one of its meanings: data, a dictionary or an array.
    private func readArray(depth: Int, _ budget: inout ValueBudget) throws(BusError) -> Value {
        let contents = try peekContents()
        if contents == "y" {
            return .data(try readData(&budget))
        }
        try checkElements(contents)
        guard depth < budget.maximumDepth else {
            throw .store(
                .depthExceeded, "A value may have \(budget.maximumDepth) containers around it, and this has more.")
        }
        return contents.first == "{"
            ? try readDictionary(contents, depth: depth + 1, &budget)
            : try readArray(contents, depth: depth + 1, &budget)
    }

    private func readData(_ budget: inout ValueBudget) throws(BusError) -> [UInt8] {
        do {
            let bytes = try readBytes(atMost: budget.largestData)
            try budget.spend(max(1, bytes.count))
            return bytes
        } catch  where error.name == BusError.limitsExceeded("").name {
            throw budget.exceed()
        }
    }

    private func readLargeInteger() throws(BusError) -> Int64 {
        let number = try readUInt64()
        guard let integer = Int64(exactly: number) else {
            throw .store(.invalidValue, "An integer can be \(Int64.max) at most, and this is \(number).")
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
            throw .store(.invalidValue, "A date is a finite number of seconds since 2001, and this is \(seconds).")
        }
        return seconds
    }

    private func readArray(
        _ contents: String, depth: Int, _ budget: inout ValueBudget
    ) throws(BusError) -> Value {
        var values: [Value] = []
        _ = try enterContainer("a", contents)
        let type = Self.type(of: contents)
        while try !isAtEnd(whole: false) {
            if values.isEmpty { try budget.spend(0, memory: ValueBudget.container) }
            try budget.spendElement()
            values.append(
                type == "v" ? try readValue(depth: depth, &budget) : try readContents(type, depth: depth, &budget))
        }
        try exitContainer()
        // An empty array counts too.
        if values.isEmpty { try budget.spend(1) }
        return .array(values)
    }

    /// Returns the type of an array's elements, so that it isn't asked for each of them.
    private static func type(of contents: String) -> Unicode.Scalar {
        let type = contents.unicodeScalars.first ?? "v"
        return type == "(" ? "r" : type
    }

    private func readDictionary(
        _ contents: String, depth: Int, _ budget: inout ValueBudget
    ) throws(BusError) -> Value {
        var values: [Text: Value] = [:]
        let entry = String(contents.dropFirst().dropLast())
        _ = try enterContainer("a", contents)
        while try enterContainer("e", entry) {
            let key = Text(try readString())
            try budget.spendElement()
            try budget.spend(key.utf8Count, memory: ValueBudget.container)
            let value = try readValue(depth: depth, &budget)
            guard values.updateValue(value, forKey: key) == nil else {
                throw .store(.invalidValue, "A dictionary has the key \"\(key)\" twice.")
            }
            try exitContainer()
        }
        try exitContainer()
        if values.isEmpty { try budget.spend(1) }
        return .dictionary(values)
    }

    /// Refuses an element type that a value can't have, even if the array is empty.
    private func checkElements(_ contents: String) throws(BusError) {
        var rest = Array(contents.utf8)[...]
        while let code = rest.popFirst() {
            switch Character(Unicode.Scalar(code)) {
            case "o", "g", "h": throw notAValue("a" + contents)
            // The only struct is a date, and the keys of dictionaries are strings.
            case "(" where !rest.starts(with: "d)".utf8): throw notAValue("a" + contents)
            case "{" where rest.first != UInt8(ascii: "s"): throw notAValue("a" + contents)
            default: break
            }
        }
    }

    private func notAValue(_ type: String) -> BusError {
        .store(
            .invalidValue,
            "A value of the D-Bus type \"\(type)\" is not a property list; use b, x, d, s, ay, (d), av or a{sv}.")
    }
}
