// SPDX-License-Identifier: Apache-2.0

/// The words of recovery phrases: BIP-39's English list, in the file beside this one.
package enum WordList {
    /// 2048 words, in their order.
    package static let words = PackageResources.english_txt.split(separator: UInt8(ascii: "\n")).map {
        String(decoding: $0, as: UTF8.self)
    }

    private static let places = Dictionary(
        uniqueKeysWithValues: words.enumerated().map { (beginning(of: Array($1.utf8)), $0) })

    /// The place of the word that begins like this one; `nil` if there is none.
    package static func place(of word: some Collection<UInt8>) -> Int? {
        guard word.allSatisfy({ (65...90).contains($0) || (97...122).contains($0) }) else { return nil }
        return places[beginning(of: word)]
    }

    /// The first four letters, in lower case: no two words of the list have the same.
    private static func beginning(of word: some Collection<UInt8>) -> [UInt8] { word.prefix(4).map { $0 | 0x20 } }
}
