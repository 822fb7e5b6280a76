// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import PropertyList
internal import UbiquitousStore

/// `restore`.
struct RestoreCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore",
        abstract: "Restores an earlier value of a key.",
        discussion: """
            The value that it replaces goes into the history, so restoring twice undoes the first. Exits with 1 if \
            there is no such value.
            """)

    @OptionGroup var options: StoreOptions
    @OptionGroup var change: ChangeOptions

    @Argument(help: "The key.", completion: .custom { arguments, _, _ in KeyCompletion.keys(arguments) })
    var key: String

    @Argument(
        help: "Which one, as \"history\" numbers them; 1 is the newest.",
        completion: .custom { arguments, index, _ in KeyCompletion.historyNumbers(arguments, index) })
    var number = 1

    func validate() throws {
        if number < 1 { throw ValidationError(localized("The values of \"history\" are numbered from 1.")) }
    }

    func perform() async throws {
        try await options.withStore { store in
            let history = try await store.history(key)
            guard number <= history.count else {
                throw Failure(
                    .absent,
                    history.isEmpty
                        ? "There are no earlier values of \(Output.quoted(key))."
                        : """
                        Of the earlier values of \(Output.quoted(key)) there is no number \(number); the last is \
                        \(history.count).
                        """
                )
            }
            let former = history[number - 1].value
            try await Change(store: store, options: change).make { _ in [Text(key): former] }
        }
    }
}
