// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import PropertyList
internal import SDBus
internal import UbiquitousStore

/// What a shell offers when a person presses Tab. It never complains: where the service isn't, nothing is offered.
enum Completions {
    /// The identifiers that may be opened, and those that hold something.
    static func stores(_ arguments: [String]) -> [String] {
        ask(arguments) { options in
            let connection = try await options.service.connect()
            let uid = try options.service.uid()
            let listed = try await connection.manager.stores(ofEverybody: options.service.user != nil)
            let entitled = try await connection.manager.identify().entitled
            return Set(listed.filter { $0.uid == uid }.map(\.identifier) + entitled).sorted()
        }
    }

    /// The keys of the store that the words so far name.
    static func keys(_ arguments: [String]) -> [String] {
        ask(arguments) { options in
            try await options.withOpenStore { store in
                try await store.snapshot().values.keys.sorted().map(\.string).filter(isPlain)
            }
        }
    }

    /// The devices of the account, by name where that is plain.
    static func devices(_ arguments: [String]) -> [String] {
        ask(arguments) { options in
            try await options.service.account().devices().map { isPlain($0.name) ? $0.name : $0.identifier }
        }
    }

    /// Whether a word is typed as it is: what a shell would need quotes for is left to the person.
    private static func isPlain(_ word: String) -> Bool {
        word.unicodeScalars.allSatisfy {
            $0.value > 0x20 && $0.value != 0x7F && !"'\"\\`$&|;()<>*?[]{}!#~".unicodeScalars.contains($0)
        }
    }

    private static func ask(
        _ arguments: [String], _ question: @escaping @BusActor @Sendable (StoreOptions) async throws -> [String]
    ) -> [String] {
        let shell = CompletionShell.requesting
        let words = shell == .bash ? joined(arguments) : arguments
        guard let options = try? StoreOptions.parse(named(words)) else { return [] }
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
    private static func joined(_ words: [String]) -> [String] {
        words.reduce(into: []) { joined, word in
            let isPart = [":", "="].contains(word) || [":", "="].contains(joined.last?.last)
            if isPart, let last = joined.popLast() { joined.append(last + word) } else { joined.append(word) }
        }
    }

    /// The options among the words that say which store is meant.
    private static func named(_ arguments: [String]) -> [String] {
        var options: [String] = []
        for name in ["--store", "--bus", "--user"] {
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
