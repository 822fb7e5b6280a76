// SPDX-License-Identifier: Apache-2.0

extension String {
    /// The text as a message on the bus, a log or a terminal can show it, whoever wrote it: control characters are
    /// replaced, and a text that is too long is cut between characters.
    ///
    /// - Parameters:
    ///   - limit: the most bytes of UTF-8, of `ending` too.
    ///   - ending: what a text that was cut ends with.
    package func readable(atMost limit: Int, ending: String = "…") -> String {
        if utf8.count <= limit, unicodeScalars.allSatisfy({ !$0.isControl }) { return self }
        var (text, whole) = ("", true)
        var bytes = 0
        for character in self {
            let readable = character.unicodeScalars.map { $0.isControl ? "\u{FFFD}" : String($0) }.joined()
            bytes += readable.utf8.count
            // Cut where the ending still fits, once it is known that one is needed.
            if bytes > limit {
                whole = false
                break
            }
            text += readable
        }
        if whole { return text }
        while text.utf8.count > limit - ending.utf8.count { text.removeLast() }
        return text + ending
    }
}

extension Unicode.Scalar {
    /// U+0000 ends texts on the bus, control characters steer terminals, and some others the direction of what follows.
    fileprivate var isControl: Bool {
        switch value {
        case 0..<0x20, 0x7F..<0xA0, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }
}
