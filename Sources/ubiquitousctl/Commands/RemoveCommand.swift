// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import PropertyList

/// `remove`.
struct RemoveCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Removes keys with their values.",
        discussion: "A key that the store doesn't have is no change. \"history\" and \"restore\" bring values back.")

    @OptionGroup var options: StoreOptions
    @OptionGroup var change: ChangeOptions

    @Argument(help: "The keys.", completion: .custom { arguments, _, _ in KeyCompletion.keys(arguments) })
    var keys: [String]

    func perform() async throws {
        let removed = Dictionary(keys.map { (Text($0), Value?.none) }) { $1 }
        try await options.withStore { store in
            try await Change(store: store, options: change).make { _ in removed }
        }
    }
}
