// SPDX-License-Identifier: Apache-2.0

internal import PlainText
public import SDBus

/// Texts for people: names and sentences that came from somewhere else, as a remote.
extension Message {
    /// The most bytes of a text; a device's name has 255.
    public static let longestText = 1024

    /// Writes a text as `String.cleaned(atMost:)` has it.
    public func append(text: String) throws(BusError) {
        try append(text.cleaned(atMost: Self.longestText))
    }

    /// Writes an entry of an `a{sv}` that is a text.
    public func append(entry name: String, text: String) throws {
        try container("e", "sv") {
            try append(name)
            try container("v", "s") { try append(text: text) }
        }
    }
}
