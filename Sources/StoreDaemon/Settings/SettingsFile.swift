// SPDX-License-Identifier: Apache-2.0

// The form of systemd's files: sections, Key=value, and comments. Later files would replace values; here there is
// one file, so a key that comes twice is a mistake, unless it is a list's.

extension Settings {
    /// Reads a file of settings.
    /// - Throws: the first line that isn't right, with what is allowed there.
    public init(file text: String) throws(SettingsError) {
        self.init()
        var reader = SettingsReader()
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            do { try reader.read(trimmed(line), into: &self) } catch {
                throw SettingsError(line: index + 1, reason: error.reason)
            }
        }
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
        if first == "[" { return section = try name(ofSection: line) }
        guard let equals = line.firstIndex(of: "=") else {
            throw LineError(reason: "it is no [Section], no Key=value and no # comment")
        }
        let key = String(trimmed(line[..<equals]))
        let entry = try entry(key)
        let value = trimmed(line[line.index(after: equals)...])
        guard seen.insert(key).inserted || entry.isList else {
            throw LineError(reason: "\(key)= comes a second time; only lists may")
        }
        guard entry.set(&settings, value) else {
            throw LineError(reason: "\(key)=\(value.prefix(80)) isn't allowed; \(entry.allowed) is")
        }
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
