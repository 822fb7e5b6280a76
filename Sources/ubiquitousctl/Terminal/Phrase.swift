// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import RecoveryWordList
internal import SDBus
internal import UbiquitousStore

/// Reads and shows recovery phrases.
@BusActor
enum Phrase {
    private static let wordCount = 12

    /// Returns the words of a file, however many lines they take; `-` is standard input.
    static func read(from file: String) throws -> String {
        try Password.text(of: file) { text in
            let words = WordList.words(in: text)
            return words.isEmpty ? nil : words.joined(separator: " ")
        } orElse: {
            Failure(.usage, "There is no recovery phrase in \($0).")
        }
    }

    /// Asks for a phrase, again after a likely typing error; without a terminal, reads it from standard input.
    /// - Parameter attempt: takes the phrase.
    static func ask(_ url: String, _ attempt: @BusActor (String) async throws -> Void) async throws {
        for triesLeft in (0..<3).reversed() {
            let phrase = try await typed(
                localized("The account is encrypted. Its recovery phrase (12 words) for \(url): "))
            do { return try await attempt(phrase) } catch let error as UbiquitousStoreError
                where [.keyWrong, .invalidArguments].contains(error.code) && triesLeft > 0
                && isatty(STDIN_FILENO) == 1
            {
                Output.complain(Failure(error).message)
            }
        }
    }

    /// Asks for the words, which may take several lines, as where they are shown. An empty line ends them early.
    private static func typed(_ prompt: String) async throws -> String {
        guard isatty(STDIN_FILENO) == 1 else { return try read(from: "-") }
        return try await HiddenInput(STDIN_FILENO).lines(prompt) { text in
            let count = WordList.words(in: text).count
            if count >= wordCount { return nil }
            return localized("\(count) of \(wordCount) words. The others, or Enter to end here: ")
        }
    }

    /// Shows the phrase of a new account, and waits until the user confirms that it is written down.
    static func show(_ account: AccountObject) async throws {
        let words = try await account.recoveryPhrase(marksShown: false).split(separator: " ").map(String.init)
        let paragraphs = [
            localized("The account is encrypted. These are the words of its recovery phrase:"), lines(words),
            localized(
                """
                Write them down and keep them apart from this device: another device asks for them. Without them and \
                without a device that is signed in, nobody can read the values in the remote any more. "ubiquitousctl \
                account phrase" shows them again.
                """),
        ]
        let question = localized("Press Enter once they are written down: ")
        Output.write(paragraphs.joined(separator: "\n\n") + "\n" + question, to: STDERR_FILENO)
        guard readLine() != nil else { return }
        _ = try await account.recoveryPhrase(marksShown: true)
    }

    /// Shows a new phrase at a terminal; elsewhere says where it is found.
    static func tell(_ account: AccountObject, _ change: ChangeOptions) async throws {
        let isAtTerminal = isatty(STDIN_FILENO) == 1 && !change.json
        isAtTerminal ? try await show(account) : remark()
    }

    /// Says where a script finds the phrase, which isn't shown without a terminal.
    static func remark() {
        Output.remark(
            """
            The account has a new recovery phrase, without which nobody can sign another device in: \
            "ubiquitousctl account phrase" prints it.
            """)
    }

    /// Returns the words with their numbers, four to a line at most.
    /// - Parameter width: the terminal's, in columns.
    static func lines(_ words: [String], width: Int? = Style.width(of: STDERR_FILENO)) -> String {
        let column = 14
        let numbered = words.enumerated().map { number, word in
            let text = "\(number < 9 ? " " : "")\(number + 1). \(word)"
            return text + String(repeating: " ", count: max(1, column - text.count))
        }
        let count = width.map { max(1, min(4, ($0 - 2) / column)) } ?? 4
        return stride(from: 0, to: numbered.count, by: count).map { start in
            "  " + numbered[start..<min(start + count, numbered.count)].joined()
        }.joined(separator: "\n")
    }
}

/// A question that is answered with yes or no.
struct Question {
    private let question: Sentence
    private let usual: Bool
    private let advice: Sentence

    /// - Parameters:
    ///   - question: the question, with the answers' letters after it.
    ///   - usual: the answer if the user only presses Enter.
    ///   - advice: what to do if there is no answer.
    init(_ question: Sentence, default usual: Bool, advice: Sentence) {
        (self.question, self.usual, self.advice) = (question, usual, advice)
    }

    /// Whether the answer is yes.
    func isYes() throws -> Bool {
        while true {
            Output.write(question.text + " ", to: STDERR_FILENO)
            switch readLine()?.lowercased() {
            case "": return usual
            case "y", "yes", "j", "ja": return true
            case "n", "no", "nein": return false
            case nil: throw Failure(.usage, "There was no answer.", advice: advice)
            default: continue
            }
        }
    }
}
