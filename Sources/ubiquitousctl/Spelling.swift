// SPDX-License-Identifier: Apache-2.0

/// Suggests what the user meant by an unknown word.
enum Spelling {
    /// Other programs' words for this program's commands.
    private static let synonyms = [
        "rm": "remove", "del": "remove", "delete": "remove", "unset": "remove", "ls": "list", "read": "get",
        "cat": "get", "show": "get", "write": "set", "put": "set", "login": "sign-in", "logout": "sign-out",
        "info": "status", "log": "history", "undo": "restore",
    ]

    /// Returns the word that is most similar to what was typed; `nil` if none is similar enough.
    static func nearest(to typed: String, in words: [String]) -> String? {
        guard typed.utf8.count <= 64 else { return nil }
        if let word = synonyms[typed.lowercased()], words.contains(word) { return word }
        let ranked = words.map { (word: $0, distance: distance(typed, $0)) }
        guard let best = ranked.min(by: { $0.distance < $1.distance }) else { return nil }
        return best.distance <= max(1, best.word.count / 3) ? best.word : nil
    }

    /// Returns how many letters have to be inserted, deleted, replaced or swapped with their neighbour.
    static func distance(_ left: String, _ right: String) -> Int {
        let (left, right) = (Array(left.lowercased()), Array(right.lowercased()))
        var rows = [Array(0...right.count)]
        for i in left.indices {
            var row = [i + 1]
            for j in right.indices {
                var least = min(rows[i][j + 1] + 1, row[j] + 1, rows[i][j] + (left[i] == right[j] ? 0 : 1))
                let isSwapped = i > 0 && j > 0 && left[i] == right[j - 1] && left[i - 1] == right[j]
                if isSwapped { least = min(least, rows[i - 1][j - 1] + 1) }
                row.append(least)
            }
            rows.append(row)
        }
        return rows[left.count][right.count]
    }
}
