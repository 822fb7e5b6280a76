// SPDX-License-Identifier: Apache-2.0

internal import PlainText
package import SDBus

/// Texts for users that come from elsewhere, such as a remote: names and sentences.
extension Message {
    /// The most bytes of a text. A device's name has at most 255.
    package static let longestText = 1024

    /// Writes a text, cleaned by `String.cleaned(atMost:)`.
    /// - Throws: `BusError` (LimitsExceeded) if the message becomes too large.
    package func append(text: String) throws(BusError) {
        try append(text.cleaned(atMost: Self.longestText))
    }

    /// Writes an array of texts, each cleaned in the same way.
    /// - Throws: `BusError` (LimitsExceeded) if the message becomes too large.
    package func append(texts: [String]) throws(BusError) {
        try append(strings: texts.map { $0.cleaned(atMost: Self.longestText) })
    }

    /// Writes an entry of an `a{sv}` with a text, cleaned in the same way.
    /// - Throws: `BusError` (LimitsExceeded) if the message becomes too large.
    package func append(entry name: String, text: String) throws {
        try container("e", "sv") {
            try append(name)
            try container("v", "s") { try append(text: text) }
        }
    }
}
