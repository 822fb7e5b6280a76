// SPDX-License-Identifier: Apache-2.0

package import PropertyList
package import SDBus

extension Message {
    /// Reads a store's `a{sv}`. Keys are distinct by their bytes.
    /// - Throws: what ``readValues(maximumDepth:)`` throws.
    package func readTexts() throws -> [Text: Value] {
        Dictionary(uniqueKeysWithValues: try readValues().map { (Text($0.key), $0.value) })
    }

    /// Reads an interface's `a{sv}`. Of names that Swift considers equal, the last one counts.
    /// - Throws: what ``readValues(maximumDepth:)`` throws.
    package func readDictionary() throws -> [String: Value] {
        Dictionary(try readValues().map { ($0.key, $0.value) }, uniquingKeysWith: { $1 })
    }

    /// Reads an `aa{sv}`.
    /// - Throws: what ``readValues(maximumDepth:)`` throws; `BusError` (InvalidArgs) if something else is next.
    package func readDictionaries() throws -> [[String: Value]] {
        var dictionaries: [[String: Value]] = []
        try enterContainer("a", "a{sv}")
        while try !isAtEnd(whole: false) { dictionaries.append(try readDictionary()) }
        try exitContainer()
        return dictionaries
    }

    /// Writes an entry of an `a{sv}` with a `t`, which no property-list value is.
    /// - Throws: `BusError` (LimitsExceeded) if the message becomes too large.
    package func append(option name: String, _ number: UInt64) throws {
        try container("e", "sv") {
            try append(name)
            try container("v", "t") { try append(number) }
        }
    }
}
