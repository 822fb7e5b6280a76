// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import PropertyListFiles
internal import SDBus

/// Answers a shell's completion requests. It never fails: without the service, it offers nothing.
enum CompletionQuestion {
    /// Whether a shell passes on a word as it was offered, and not as an option. Others are not offered: bash expands
    /// what it is offered, and would run a command in the name of another device.
    static func isSafe(_ word: String, in shell: CompletionShell?) -> Bool {
        let special = special(in: shell).unicodeScalars
        return !word.isEmpty && !word.hasPrefix("-")
            && word.unicodeScalars.allSatisfy { !$0.isHidden && !special.contains($0) }
    }

    /// Returns the characters that a shell doesn't quote when it inserts what it is offered. zsh removes backslashes
    /// before, and expands exclamation marks afterwards.
    private static func special(in shell: CompletionShell?) -> String {
        switch shell {
        case .fish?: ""
        case .zsh?: "\\!"
        default: " '\"\\`$&|;()<>*?[]{}!#~"
        }
    }

    /// Asks the service, and returns the words of the answer that are safe in the shell.
    ///
    /// - Parameters:
    ///   - names: the options to take from the words.
    ///   - question: asks the service, given these options.
    static func ask<Options: ParsableArguments & Sendable>(
        _ arguments: [String], _ names: [String],
        _ question: @escaping @BusActor @Sendable (Options) async throws -> [String]
    ) -> [String] {
        let shell = CompletionShell.requesting
        guard let options = try? Options.parse(named(whole(arguments), names)) else { return [] }
        let found = Found()
        _ = EventLoop.runOnThisThread {
            // A completion may take two seconds at most.
            let deadline = EventLoop.shared.after(.seconds(2)) { EventLoop.shared.exit(1) }
            found.words = (try? await question(options)) ?? []
            withExtendedLifetime(deadline) {}
            return 0
        }
        let words = found.take().filter { isSafe($0, in: shell) }
        // For zsh, a description follows a colon.
        return shell == .zsh ? words.map { $0.replacing(":", with: "\\:") } : words
    }

    /// Returns the words as the user typed them. Bash also splits them at colons and equals signs.
    static func whole(_ words: [String]) -> [String] {
        guard CompletionShell.requesting == .bash else { return words }
        return words.reduce(into: []) { joined, word in
            let isPart = [":", "="].contains(word) || [":", "="].contains(joined.last?.last)
            if isPart, let last = joined.popLast() { joined.append(last + word) } else { joined.append(word) }
        }
    }

    /// Returns those of the named options that the words contain.
    private static func named(_ arguments: [String], _ names: [String]) -> [String] {
        var options: [String] = []
        for name in names {
            let short = name == "--store" ? "-s" : name
            if let index = arguments.lastIndex(where: { $0 == name || $0 == short }), index + 1 < arguments.count {
                // An empty argument is the one being completed.
                if !arguments[index + 1].isEmpty { options.append("\(name)=\(arguments[index + 1])") }
            } else if let word = arguments.last(where: { $0.hasPrefix(name + "=") }) {
                options.append(word)
            }
        }
        return options
    }

    @BusActor
    private final class Found {
        var words: [String] = []

        nonisolated init() {}

        /// Returns the words. Called on the loop's thread after the loop has ended.
        nonisolated func take() -> [String] { BusActor.assumeIsolated { words } }
    }
}
