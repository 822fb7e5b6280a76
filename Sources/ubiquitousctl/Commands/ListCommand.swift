// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import PropertyList
internal import UbiquitousStore

/// `list`.
struct ListCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Prints all keys of a store with their values.",
        discussion: "Values are printed as \"get\" does, sorted by key.")

    @OptionGroup var options: StoreOptions

    @Flag(help: "Print an object of JSON.")
    var json = false

    @Flag(help: "Print the keys only, one on each line.")
    var keys = false

    func perform() async throws {
        let uid = try options.service.uid()
        let (values, isDamaged) = try await options.withStore { store in
            // If root lists the store of a user whose account was never opened, the account is unknown.
            let account = try? await store.connection.account(ofUser: uid).properties()
            return (try await store.snapshot().values, account?.databasesSetAside.isEmpty == false)
        }
        if isDamaged {
            Output.remark(
                """
                A damaged database was set aside, and values may be missing; "ubiquitousctl doctor" says what to do
                """)
        }
        let sorted = values.sorted { $0.key < $1.key }
        if json {
            Output.print(json: keys ? .array(sorted.map { .string($0.key) }) : .dictionary(values))
        } else if keys {
            for (key, _) in sorted { Output.print(ValueText.word(key: key)) }
        } else {
            let style = Style(for: 1)
            for (key, value) in sorted {
                Output.print("\(style.bold(ValueText.word(key: key))) = \(ValueText.word(value))")
            }
        }
    }
}
