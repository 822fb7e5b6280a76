// SPDX-License-Identifier: Apache-2.0

internal import RecoveryWordList

/// The words that let another device in to an encrypted account.
package struct RecoveryWords: Sendable {
    /// The words, in their order.
    package let words: [String]

    /// - Parameter phrase: the words, separated by spaces.
    package init(_ phrase: String) { words = phrase.split(separator: " ").map(String.init) }

    /// Returns the indices of three words that the user has to type, to prove that they are written down.
    package func placesToTest() -> [Int] { words.indices.shuffled().prefix(3).sorted() }

    /// Whether a text is the word at an index, as another device would read it.
    package func has(_ text: String, at place: Int) -> Bool {
        guard words.indices.contains(place), let typed = WordList.place(of: text.trimmed.utf8) else { return false }
        return typed == WordList.place(of: words[place].utf8)
    }
}

extension RecoveryWords: CustomStringConvertible, CustomReflectable {
    /// A description without any of the words.
    package var description: String { "recovery words" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
