// SPDX-License-Identifier: Apache-2.0

/// The words of recovery phrases: BIP-39's English list, in `english.txt`.
package enum WordList {
    /// The 2048 words, in the list's order.
    package static let words = PackageResources.english_txt.split(separator: UInt8(ascii: "\n")).map {
        String(decoding: $0, as: UTF8.self)
    }

    /// Returns what a user has typed for words, without what stands between them: white space, punctuation and numbers,
    /// as in a numbered list.
    package static func words(in text: some StringProtocol) -> [Substring] {
        Substring(text).split { !$0.isLetter && !$0.isNumber }.filter { !$0.allSatisfy(\.isNumber) }
    }

    private static let places = Dictionary(
        uniqueKeysWithValues: words.enumerated().map { (beginning(of: Array($1.utf8)), $0) })

    /// Returns the index of the word with the same first four letters, in any case; `nil` if there is none.
    package static func place(of word: some Collection<UInt8>) -> Int? {
        guard word.allSatisfy({ (65...90).contains($0) || (97...122).contains($0) }) else { return nil }
        return places[beginning(of: word)]
    }

    /// Returns the first four letters, in lower case. They differ between any two words of the list.
    private static func beginning(of word: some Collection<UInt8>) -> [UInt8] { word.prefix(4).map { $0 | 0x20 } }
}
