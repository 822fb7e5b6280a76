// SPDX-License-Identifier: Apache-2.0

internal import GLibLoop
internal import RecoveryWordList
internal import UbiquitousStore

/// Checks recovery words that the user types.
package enum TypedWords {
    private static let count = 12

    /// Returns what is wrong with words that are still being typed, except for an unfinished word; `nil` if nothing is.
    package static func flawSoFar(_ text: String) -> String? {
        let words = WordList.words(in: text)
        let isLastFinished = text.last.map { !$0.isLetter } ?? true
        return flaw(in: isLastFinished ? words[...] : words.dropLast())
    }

    /// Returns what is wrong with complete words; `nil` if nothing is that can be found without the account.
    package static func flaw(_ text: String) -> String? {
        let words = WordList.words(in: text)
        if let flaw = flaw(in: words[...]) { return flaw }
        return words.count == count
            ? nil
            : trn(
                "There is %1 word, and the account has 12.", "There are %1 words, and the account has 12.", words.count)
    }

    private static func flaw(in words: ArraySlice<Substring>) -> String? {
        guard let place = words.firstIndex(where: { WordList.place(of: $0.utf8) == nil }) else {
            return words.count > count ? tr("There are more than 12 words.") : nil
        }
        return tr("Word %1 is not in the word list. Check its spelling.", String(place + 1))
    }

    /// Returns why the account refuses words that have no flaw.
    package static func sentence(_ error: any Error) -> String {
        switch (error as? UbiquitousStoreError)?.code {
        case .keyWrong: tr("These are the words of another account.")
        case .invalidArguments:
            tr("The words don't match: one is wrong, or two have changed places. Compare them with your note.")
        default: ErrorSentence.text(error)
        }
    }
}
