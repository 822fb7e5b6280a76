// SPDX-License-Identifier: Apache-2.0

/// Where files of settings set their keys.
package struct SettingsPlaces: Sendable {
    /// The file and the line that set a key last, by the section and the key.
    private var places: [String: String] = [:]

    /// Makes places of no keys.
    package init() {}

    /// Notes that a line sets a key.
    mutating func note(_ entry: SettingsEntry, _ file: String, line: Int) {
        // Each line of a list counts, and not the last one alone.
        if !entry.isList { places[Self.name(entry)] = "\(file), line \(line)" }
    }

    /// Returns a sentence about settings after the place of the first key in it that a file sets; the sentence alone if
    /// none does.
    package func naming(_ sentence: String) -> String {
        let keys = sentence.matches(of: /([A-Z][A-Za-z]+)=/).map { String($0.1) }
        let entries = keys.compactMap { key in SettingsEntry.all.first { $0.key == key } }
        return entries.lazy.compactMap { places[Self.name($0)] }.first.map { "\($0): \(sentence)" } ?? sentence
    }

    private static func name(_ entry: SettingsEntry) -> String { "\(entry.section).\(entry.key)" }
}
