// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import UbiquitousStoreTesting

/// The rule for error texts of the service, the libraries and the command line: each is a sentence that says what was
/// wrong and what to do.
@Suite struct ErrorTextTests {
    /// The calls that make errors for users.
    private static var makers: Regex<Substring> {
        #/
        \b(?: RemoteError | DaemonError | ValidationError | UbiquitousStoreError | Failure ) \(
        | \b(?: noteProblem | leaveBackend | ValidationError\(\s*localized ) \(
        | \.(?: invalidArguments | accessDenied | limitsExceeded | failed | disconnected | inputOutput | store ) \(
        | \.(?: notSupported | unknownMethod | noReply | nameTaken ) \(
        | \.Code:\ Sentence\]\ =\ \[
        /#.wordBoundaryKind(.simple)
    }

    /// Returns the sources of programs and libraries, except those for tests and `defaults`, whose texts are macOS's.
    private static func sources() throws -> [String] {
        let root = repositoryFile("Sources")
        let names = try #require(FileManager.default.enumerator(atPath: root)).compactMap { $0 as? String }
        return names.filter { name in
            name.hasSuffix(".swift") && !name.contains("Testing/") && !name.contains("Commands/Defaults/")
        }.map { "\(root)/\($0)" }
    }

    /// Texts that must not change, because code compares them with those of libsystemd or an earlier version.
    private static let fixed: Set = ["Method call timed out"]

    /// Whether a text doesn't begin in lower case, and ends with a full stop or question mark, or another sentence.
    private static func isSentence(_ text: String) -> Bool {
        text.first?.isLowercase != true && text.contains(/[.?]( \{\d\})?$/)
    }

    @Test func `every error text is a sentence`() throws {
        var count = 0
        for path in try Self.sources() {
            let source = try String(contentsOfFile: path, encoding: .utf8)
            for literal in SentenceScanner(source).literals(after: Self.makers) {
                // Names of options, keys and files aren't texts.
                guard literal.isArgument, literal.format.contains(" "), !Self.fixed.contains(literal.format) else {
                    continue
                }
                count += 1
                #expect(Self.isSentence(literal.format), "\(path): \(literal.format)")
            }
        }
        #expect(count > 250)
    }
}
