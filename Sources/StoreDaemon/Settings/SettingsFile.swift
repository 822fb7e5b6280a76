// SPDX-License-Identifier: Apache-2.0

// Files of settings have the format of systemd's: sections, Key=value, and comments. A later file replaces the values
// of earlier ones and adds to their lists; an empty value clears a list, and takes back DeviceName=, DefaultAccount=,
// DefaultAuthority= and Coalescing=. A key may occur twice in a section of a file only if it is a list's.
//
// A wrong line doesn't invalidate the others: a service with half of its settings is better than none. But a wrong line
// must not lift a restriction: see `keepClosed(_:_:)`.

internal import Foundation
internal import RemoteAddress

/// A file of settings.
package struct SettingsFile: Sendable {
    /// The file's path.
    package let path: String
    /// The file's text.
    package let text: String

    /// Makes a file of settings from its parts.
    package init(path: String, text: String) { (self.path, self.text) = (path, text) }
}

extension Settings {
    /// Reads files of settings. Later files take precedence.
    /// - Returns: the settings that are right, and an error for each line that isn't.
    package static func read(_ files: [SettingsFile]) -> (settings: Settings, errors: [SettingsError]) {
        var places = SettingsPlaces()
        return read(files, &places)
    }

    /// Reads files of settings, and notes where they set their keys.
    package static func read(
        _ files: [SettingsFile], _ places: inout SettingsPlaces
    ) -> (settings: Settings, errors: [SettingsError]) {
        var settings = Settings()
        var errors: [SettingsError] = []
        for file in files {
            var reader = SettingsReader()
            // Editors of other systems begin a file with a byte order mark, and end its lines with CR LF, which is one
            // character.
            let text = file.text.first == "\u{FEFF}" ? file.text.dropFirst() : file.text[...]
            let lines = text.split(omittingEmptySubsequences: false) { ["\n", "\r\n", "\r"].contains($0) }
            for (index, line) in lines.enumerated() {
                do {
                    let entry = try reader.read(trimmed(line), into: &settings)
                    if let entry { places.note(entry, file.path, line: index + 1) }
                } catch {
                    errors.append(SettingsError(file: file.path, line: index + 1, reason: error.reason))
                }
            }
        }
        return (settings, errors)
    }

    /// Reads one file of settings.
    /// - Throws: the first wrong line, with what is allowed there.
    package init(file text: String) throws(SettingsError) {
        let (settings, errors) = Self.read([SettingsFile(path: "", text: text)])
        if let error = errors.first { throw error }
        self = settings
    }
}

/// Why a line is refused.
private struct LineError: Error {
    let reason: String
    /// Whether the line may have been meant to set a restriction.
    var mayRestrict = true
}

private struct SettingsReader {
    private var section: String?
    /// Whether the last section doesn't exist.
    private var isBelowUnknown = false
    private var seen: Set<String> = []

    /// Reads a line.
    /// - Returns: the key that it sets; `nil` if it sets none.
    mutating func read(_ line: Substring, into settings: inout Settings) throws(LineError) -> SettingsEntry? {
        guard let first = line.first, first != "#", first != ";" else { return nil }
        if first == "[" {
            (section, isBelowUnknown) = (nil, true)
            do { section = try name(ofSection: line) } catch {
                let rest = line.contains("=") ? line.dropFirst() : line.drop { $0 != "]" }.dropFirst()
                if !rest.isEmpty { keepClosed(rest, &settings) }
                throw error
            }
            isBelowUnknown = false
            return nil
        }
        do { return try readEntry(line, into: &settings) } catch {
            if error.mayRestrict { keepClosed(line, &settings) }
            throw error
        }
    }

    private mutating func readEntry(_ line: Substring, into settings: inout Settings) throws(LineError) -> SettingsEntry
    {
        guard let equals = line.firstIndex(of: "=") else {
            throw LineError(reason: "it is not a [Section], a Key=value pair or a # comment")
        }
        let key = String(trimmed(line[..<equals]))
        let value = trimmed(line[line.index(after: equals)...])
        if key.isEmpty { throw LineError(reason: "there is no key before its =; write Key=value") }
        let entry = try self.entry(key)
        guard seen.insert(entry.section + "." + key).inserted || entry.isList else {
            throw LineError(
                reason: "\(key)= is set twice in this file; only FolderRoot= may be", mayRestrict: entry.isRestriction)
        }
        guard entry.set(&settings, value) else {
            throw LineError(
                reason: "\(key)=\(value.prefix(80)) is not valid; allowed: \(entry.allowed)",
                mayRestrict: entry.isRestriction)
        }
        return entry
    }

    /// Applies the restriction that a wrong line may have been meant to set. There are two: `Backends=`, without which
    /// accounts may be anywhere, and `RequireEncryption=`.
    ///
    /// The line counts as the former if its key, or all of a line without "=", is about backends, or if it lists
    /// schemes; only these stay allowed. It counts as the latter if its key is about encryption and not followed by "no"
    /// alone, or if the line ends with "yes".
    private func keepClosed(_ line: Substring, _ settings: inout Settings) {
        // A file in UTF-16 has a zero after each letter. A comment at the end is part of the value, but means nothing.
        let whole = line.lowercased().filter { $0 != "\0" }
        let line = whole.firstRange(of: /\s[#;]/).map { whole[..<$0.lowerBound] } ?? whole[...]
        let key = line.prefix { $0 != "=" }
        let words = line.split { $0.isWhitespace || "=,;\"'".contains($0) }
            .map { $0.trimmingCharacters(in: CharacterSet(charactersIn: ":.")) }
        let isNo = words.count == 2 && words[1] == "no"
        let isAboutEncryption = ["encr", "crypt", "ncry"].contains(where: key.contains) || key.hasPrefix("require")
        if isAboutEncryption ? !isNo : words.last == "yes" { settings.requiresEncryption = true }
        let allowed = Set(words).intersection(BackendKind.schemes)
        if allowed.isEmpty, !key.contains("backend") { return }
        settings.backends = settings.backends.map { $0.intersection(allowed) } ?? allowed
    }

    private func name(ofSection line: Substring) throws(LineError) -> String {
        let name = String(line.dropFirst().dropLast())
        guard line.last == "]", SettingsEntry.all.contains(where: { $0.section == name }) else {
            let start = line.prefix(80)
            let problem = line.last == "]" ? "there is no section \(start)" : "\(start) doesn't end with ]"
            throw LineError(reason: "\(problem); the sections are \(SettingsEntry.sections)")
        }
        return name
    }

    private func entry(_ key: String) throws(LineError) -> SettingsEntry {
        guard let section else {
            let place = isBelowUnknown ? "in a section that doesn't exist" : "in no section; begin one with [Section]"
            throw LineError(reason: "\(key.prefix(80))= is \(place)")
        }
        let entries = SettingsEntry.all.filter { $0.section == section }
        guard let entry = entries.first(where: { $0.key == key }) else {
            let known = entries.map { $0.key + "=" }.joined(separator: ", ")
            throw LineError(reason: "[\(section)] has no \(key.prefix(80))=; its keys are \(known)")
        }
        return entry
    }
}

/// Removes white space at both ends.
private func trimmed(_ text: Substring) -> Substring {
    let rest = text.drop { $0.isWhitespace }
    return rest.prefix(upTo: rest.lastIndex { !$0.isWhitespace }.map(rest.index(after:)) ?? rest.startIndex)
}
