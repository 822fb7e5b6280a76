// SPDX-License-Identifier: Apache-2.0

// Names and values come from other devices and programs. They are shown as text, never as markup. Characters that break
// a line, or change the writing direction of the text beside them, are replaced.

extension String {
    /// The text on one line, without control and direction characters, and not longer than a row can show.
    package var shown: String {
        let clean = String(
            String.UnicodeScalarView(unicodeScalars.prefix(1000).map { $0.isHarmless ? $0 : "\u{FFFD}" }))
        return clean.count > 300 ? clean.prefix(300) + "…" : clean
    }

    /// The shown text for use within a sentence, whose writing direction it doesn't change.
    package var quoted: String { "\u{2068}\(shown)\u{2069}" }
}

extension Unicode.Scalar {
    fileprivate var isHarmless: Bool {
        switch properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned: false
        // Embeddings, overrides and isolates are harmful; joiners, which scripts and emoji need, are not.
        default: !(0x202A...0x202E).contains(value) && !(0x2066...0x2069).contains(value)
        }
    }
}
