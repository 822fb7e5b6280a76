// SPDX-License-Identifier: Apache-2.0

extension String {
    /// Returns the text as a message on the bus, a log or a terminal can show it, whatever its source: truncated, and
    /// with U+FFFD in place of what can't be sent or shown.
    ///
    /// D-Bus can't carry U+0000, libsystemd refuses noncharacters, control characters steer terminals, and some others
    /// change the direction of the text that follows.
    ///
    /// - Parameters:
    ///   - limit: the maximum number of UTF-8 bytes, including `ending`. A longer text is cut between characters.
    ///   - ending: what a text that was cut ends with.
    package func cleaned(atMost limit: Int, ending: String = "\u{2026}") -> String {
        if utf8.count <= limit, unicodeScalars.allSatisfy(\.isPlain) { return self }
        var text = ""
        var bytes = 0
        // What is beyond that doesn't fit, whatever replaces the scalars.
        for character in String(unicodeScalars.prefix(limit == .max ? limit : limit + 1)) {
            let cleaned = character.unicodeScalars.map { $0.isPlain ? String($0) : "\u{FFFD}" }.joined()
            bytes += cleaned.utf8.count
            if bytes > limit { return text.cut(to: limit - ending.utf8.count) + ending }
            text += cleaned
        }
        return text
    }

    private func cut(to limit: Int) -> String {
        var text = self
        while !text.isEmpty, text.utf8.count > limit { text.removeLast() }
        return text
    }
}

extension Unicode.Scalar {
    fileprivate var isPlain: Bool {
        switch value {
        case 0..<0x20, 0x7F..<0xA0, 0x061C, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069, 0xFDD0...0xFDEF: false
        default: value & 0xFFFE != 0xFFFE
        }
    }
}
