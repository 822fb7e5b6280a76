// SPDX-License-Identifier: Apache-2.0

internal import Crypto
internal import RecoveryWordList

/// An account key's secret in twelve words, for users to write down and to type on other devices.
///
/// Each word stands for 11 bits. The last 4 of all bits are a checksum.
package struct RecoveryPhrase: Sendable {
    /// The number of words.
    package static let wordCount = 12
    /// The most bytes of a text that is parsed.
    package static let mostBytes = 1024

    private let secret: SymmetricKey

    /// Makes the phrase of a key.
    package init(of key: AccountKey) { secret = key.secret }

    /// Parses what a user has typed: in upper or lower case, with numbers and punctuation between the words or without,
    /// each word by its first four letters.
    package init(reading text: String) throws(RecoveryPhraseError) {
        let bytes = text.utf8
        guard bytes.count <= Self.mostBytes else { throw .tooLong }
        let words = WordList.words(in: text)
        guard words.count == Self.wordCount else { throw .wordCount(words.count) }
        var bits = BitQueue()
        for (index, word) in words.enumerated() {
            guard let place = WordList.place(of: word.utf8) else { throw .unknownWord(at: index + 1) }
            bits.append(place)
        }
        guard Self.checksum(of: bits.secret) == bits.checksum else { throw .checksum }
        secret = SymmetricKey(data: bits.secret)
    }

    /// The twelve words.
    package var words: [String] {
        let secret = secret.withUnsafeBytes { Array($0) }
        let bits = BitQueue(secret: secret, checksum: Self.checksum(of: secret))
        return (0..<Self.wordCount).map { WordList.words[bits.place(at: $0)] }
    }

    /// Returns the key with this identifier, which is the account's if the phrase is.
    package func key(_ identifier: KeyIdentifier) -> AccountKey { AccountKey(secret: secret, identifier: identifier) }

    private static func checksum(of secret: [UInt8]) -> UInt8 {
        Array(SHA256.hash(data: secret))[0] >> 4
    }
}

extension RecoveryPhrase: CustomStringConvertible, CustomReflectable {
    /// A description without any of the words.
    package var description: String { "a recovery phrase" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// Why a text is no recovery phrase. It says where the mistake is, and never what was typed.
package enum RecoveryPhraseError: Error, Equatable, CustomStringConvertible {
    /// The text is longer than any phrase.
    case tooLong
    /// There are fewer or more than twelve words.
    case wordCount(Int)
    /// The word at this position, from 1, is not in the list.
    case unknownWord(at: Int)
    /// All words are in the list, but one of them is wrong, or two are in the wrong order.
    case checksum

    /// A sentence that says what is wrong and what to do.
    package var description: String {
        switch self {
        case .tooLong: "The recovery phrase is too long. Enter its 12 words, and nothing else."
        case .wordCount(let count):
            "A recovery phrase has 12 words, and these are \(count). Enter all 12, and nothing else."
        case .unknownWord(let place):
            "Word \(place) of the recovery phrase is not in the list of words. Check its spelling."
        case .checksum:
            "The recovery phrase is wrong: a word is incorrect, or two are swapped. Compare it with what you wrote down."
        }
    }
}

/// 132 bits: a secret and its checksum, eleven for each word.
private struct BitQueue {
    private(set) var secret: [UInt8] = []
    /// The bits that don't fill a byte yet; after twelve words, the checksum.
    private var rest = 0
    private var restBits = 0

    init() {}

    init(secret: [UInt8], checksum: UInt8) {
        self.secret = secret
        (rest, restBits) = (Int(checksum), 4)
    }

    var checksum: UInt8 { UInt8(truncatingIfNeeded: rest) }

    mutating func append(_ place: Int) {
        (rest, restBits) = (rest << 11 | place, restBits + 11)
        while restBits >= 8 {
            restBits -= 8
            secret.append(UInt8(truncatingIfNeeded: rest >> restBits))
            rest &= (1 << restBits) - 1
        }
    }

    /// Returns the eleven bits of a word.
    func place(at index: Int) -> Int {
        (index * 11..<index * 11 + 11).reduce(0) { $0 << 1 | bit(at: $1) }
    }

    private func bit(at index: Int) -> Int {
        let (byte, place) = index.quotientAndRemainder(dividingBy: 8)
        return byte < secret.count ? Int(secret[byte]) >> (7 - place) & 1 : rest >> (3 - place) & 1
    }
}
