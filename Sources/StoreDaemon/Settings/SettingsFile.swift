// SPDX-License-Identifier: Apache-2.0

// The form of systemd's files: sections, Key=value, and comments. What a later file says replaces what an earlier one
// does, and adds to its lists; a list that is given an empty value begins anew. Within one file a key that comes twice
// is a mistake, unless it is a list's.
//
// A line that isn't right doesn't keep the others from holding: a service with half of its settings is better than none.
// That must not lower a wall. There are two: Backends=, without which accounts may be anywhere, and RequireEncryption=.
// Of the former's words those that are right hold, and of the latter only a "no" leaves accounts in plain. A line that
// has lost its key or its section is taken for the former if it lists schemes, and for the latter if it says "yes".

internal import PlaceAddress

/// A file of settings.
public struct SettingsFile: Sendable {
    /// Where it is.
    public let path: String
    /// What it says.
    public let text: String

    /// A file of its parts.
    public init(path: String, text: String) { (self.path, self.text) = (path, text) }
}

extension Settings {
    /// Reads files of settings; what a later one says counts.
    /// - Returns: what is right of them, and each line that isn't.
    public static func read(_ files: [SettingsFile]) -> (settings: Settings, errors: [SettingsError]) {
        var settings = Settings()
        var errors: [SettingsError] = []
        for file in files {
            var reader = SettingsReader()
            // CR LF is one character: an editor of another system's must not make one line, a comment, of all.
            let lines = file.text.split(omittingEmptySubsequences: false) { ["\n", "\r\n", "\r"].contains($0) }
            for (index, line) in lines.enumerated() {
                do { try reader.read(trimmed(line), into: &settings) } catch {
                    errors.append(SettingsError(file: file.path, line: index + 1, reason: error.reason))
                }
            }
        }
        return (settings, errors)
    }

    /// Reads one file of settings.
    /// - Throws: the first line that isn't right, with what is allowed there.
    public init(file text: String) throws(SettingsError) {
        let (settings, errors) = Self.read([SettingsFile(path: "", text: text)])
        if let error = errors.first { throw error }
        self = settings
    }
}

/// Why a line is refused.
private struct LineError: Error {
    let reason: String
}

private struct SettingsReader {
    private var section: String?
    private var seen: Set<String> = []

    mutating func read(_ line: Substring, into settings: inout Settings) throws(LineError) {
        guard let first = line.first, first != "#", first != ";" else { return }
        if first == "[" {
            section = nil
            return section = try name(ofSection: line)
        }
        guard let equals = line.firstIndex(of: "=") else {
            keepClosed(line, &settings)
            throw LineError(reason: "it is no [Section], no Key=value and no # comment")
        }
        let key = String(trimmed(line[..<equals]))
        let value = trimmed(line[line.index(after: equals)...])
        let entry: SettingsEntry
        do { entry = try self.entry(key) } catch {
            keepClosed(value, &settings)
            throw error
        }
        guard seen.insert(key).inserted || entry.isList else {
            if value == "yes" { settings.requiresEncryption = true }
            throw LineError(reason: "\(key)= comes a second time; only lists may")
        }
        guard entry.set(&settings, value) else {
            throw LineError(reason: "\(key)=\(value.prefix(80)) isn't allowed; \(entry.allowed) is")
        }
    }

    /// What lists schemes may have been Backends=, and what says "yes" RequireEncryption=.
    private func keepClosed(_ value: Substring, _ settings: inout Settings) {
        let schemes = value.split(separator: " ").map(String.init)
        if schemes.last == "yes" { settings.requiresEncryption = true }
        guard !schemes.isEmpty, schemes.contains(where: PlaceKind.schemes.contains) else { return }
        let allowed = Set(schemes.filter(PlaceKind.schemes.contains))
        settings.backends = settings.backends.map { $0.intersection(allowed) } ?? allowed
    }

    private func name(ofSection line: Substring) throws(LineError) -> String {
        let name = String(line.dropFirst().dropLast())
        guard line.last == "]", SettingsEntry.all.contains(where: { $0.section == name }) else {
            throw LineError(reason: "there is no section \(line.prefix(80)); there are \(SettingsEntry.sections)")
        }
        return name
    }

    private func entry(_ key: String) throws(LineError) -> SettingsEntry {
        guard let section else {
            throw LineError(reason: "\(key.prefix(80))= is in no section; begin one with [Section]")
        }
        let entries = SettingsEntry.all.filter { $0.section == section }
        guard let entry = entries.first(where: { $0.key == key }) else {
            let known = entries.map { $0.key + "=" }.joined(separator: ", ")
            throw LineError(reason: "there is no \(key.prefix(80))= in [\(section)]; there are \(known)")
        }
        return entry
    }
}

/// What is between the white space at both ends.
private func trimmed(_ text: Substring) -> Substring {
    let rest = text.drop { $0.isWhitespace }
    return rest.prefix(upTo: rest.lastIndex { !$0.isWhitespace }.map(rest.index(after:)) ?? rest.startIndex)
}
