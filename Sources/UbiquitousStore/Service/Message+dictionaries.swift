// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import SDBus
internal import StoreBus

extension Message {
    /// Reads an `a{sv}` of values by text: of a store.
    func readTexts() throws -> [Text: Value] {
        Dictionary(uniqueKeysWithValues: try readValues().map { (Text($0.key), $0.value) })
    }

    /// Reads an `a{sv}` of values by name: of an interface.
    func readDictionary() throws -> [String: Value] {
        Dictionary(uniqueKeysWithValues: try readValues().map { ($0.key, $0.value) })
    }

    /// Reads an `aa{sv}`.
    func readDictionaries() throws -> [[String: Value]] {
        var dictionaries: [[String: Value]] = []
        try enterContainer("a", "a{sv}")
        while try !isAtEnd(whole: false) { dictionaries.append(try readDictionary()) }
        try exitContainer()
        return dictionaries
    }

    /// Writes an entry of an `a{sv}` that is a `t`, which no value of a property list is.
    func append(option name: String, _ number: UInt64) throws {
        try container("e", "sv") {
            try append(name)
            try container("v", "t") { try append(number) }
        }
    }
}

/// What an interface says in an `a{sv}`. A name that is absent, or of another type than is asked for, is the empty
/// value of that type: a service of another version may leave it out.
extension [String: Value] {
    func string(_ name: String) -> String {
        if case .string(let text) = self[name] { text.string } else { "" }
    }

    func boolean(_ name: String) -> Bool {
        self[name] == .boolean(true)
    }

    func integer(_ name: String) -> Int64 {
        if case .integer(let number) = self[name] { number } else { 0 }
    }

    func strings(_ name: String) -> [String] {
        guard case .array(let values) = self[name] else { return [] }
        return values.compactMap { if case .string(let text) = $0 { text.string } else { nil } }
    }
}

extension Limits {
    /// Reads what is on the bus under the name `Limits`; the standard ones where it says nothing.
    init(_ value: Value?) {
        self = .standard
        guard case .dictionary(let numbers) = value else { return }
        for (name, path) in [
            ("keys", \Limits.keys), ("total-bytes", \.totalBytes), ("value-bytes", \.valueBytes),
            ("key-length", \.keyLength), ("depth", \.depth),
        ] {
            if case .integer(let number) = numbers[Text(name)] { self[keyPath: path] = Int(number) }
        }
    }
}
