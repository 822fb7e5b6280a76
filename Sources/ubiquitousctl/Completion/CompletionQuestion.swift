// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import SDBus

/// What a shell offers when a person presses Tab. It never complains: where the service isn't, nothing is offered.
enum CompletionQuestion {
    /// Whether a word is typed as it is: what a shell would need quotes for is left to the person.
    static func isPlain(_ word: String) -> Bool {
        word.unicodeScalars.allSatisfy {
            $0.value > 0x20 && $0.value != 0x7F && !"'\"\\`$&|;()<>*?[]{}!#~".unicodeScalars.contains($0)
        }
    }

    /// Asks the service.
    ///
    /// - Parameters:
    ///   - names: the options among the words that count.
    ///   - question: what is asked, with those options.
    static func ask<Options: ParsableArguments & Sendable>(
        _ arguments: [String], _ names: [String],
        _ question: @escaping @BusActor @Sendable (Options) async throws -> [String]
    ) -> [String] {
        let shell = CompletionShell.requesting
        guard let options = try? Options.parse(named(whole(arguments), names)) else { return [] }
        let found = Found()
        _ = EventLoop.runOnThisThread {
            Interruption.allow()
            // Nobody waits longer than this for a word.
            let deadline = EventLoop.shared.after(.seconds(2)) { EventLoop.shared.exit(1) }
            found.words = (try? await question(options)) ?? []
            withExtendedLifetime(deadline) {}
            return 0
        }
        // To zsh, what follows a colon is a description.
        return shell == .zsh ? found.take().map { $0.replacing(":", with: "\\:") } : found.take()
    }

    /// The words as they were typed: bash splits them at colons and equals signs as well.
    static func whole(_ words: [String]) -> [String] {
        guard CompletionShell.requesting == .bash else { return words }
        return words.reduce(into: []) { joined, word in
            let isPart = [":", "="].contains(word) || [":", "="].contains(joined.last?.last)
            if isPart, let last = joined.popLast() { joined.append(last + word) } else { joined.append(word) }
        }
    }

    /// The options among the words that say which store is meant.
    private static func named(_ arguments: [String], _ names: [String]) -> [String] {
        var options: [String] = []
        for name in names {
            let short = name == "--store" ? "-s" : name
            if let index = arguments.lastIndex(where: { $0 == name || $0 == short }), index + 1 < arguments.count {
                // An empty one is what is being completed.
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

        /// After the loop has ended, on its thread.
        nonisolated func take() -> [String] { BusActor.assumeIsolated { words } }
    }
}
