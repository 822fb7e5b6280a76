// SPDX-License-Identifier: Apache-2.0

// Names and values come from other devices and programs. They are shown as text, never as markup; what would break a
// line, or turn the writing direction of what stands beside them, is replaced.

extension String {
    /// The text on one line, without control and direction characters, and not longer than a row can show.
    package var shown: String {
        let clean = String(
            String.UnicodeScalarView(unicodeScalars.prefix(1000).map { $0.isHarmless ? $0 : "\u{FFFD}" }))
        return clean.count > 300 ? clean.prefix(300) + "…" : clean
    }

    /// The same, for use within a sentence: its writing direction ends with it.
    package var quoted: String { "\u{2068}\(shown)\u{2069}" }
}

extension Unicode.Scalar {
    fileprivate var isHarmless: Bool {
        switch properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned: false
        // Embeddings, overrides and isolates; joiners, which scripts and emoji need, stay.
        default: !(0x202A...0x202E).contains(value) && !(0x2066...0x2069).contains(value)
        }
    }
}
