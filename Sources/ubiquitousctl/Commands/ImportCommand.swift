// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import PropertyList
internal import PropertyListFiles

/// `import`.
struct ImportCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Sets the values of a file, all of them or none.",
        discussion: """
            The format is detected: an XML or binary property list, or JSON, as "export" writes them. Keys that the \
            file doesn't have stay, unless --replace is given.
            """)

    @OptionGroup var options: StoreOptions
    @OptionGroup var change: ChangeOptions

    @Flag(help: "Remove the keys that the file doesn't have.")
    var replace = false

    @Argument(help: "The file; - is standard input.", completion: .file())
    var file: String = "-"

    func perform() async throws {
        let imported = try read()
        try await options.withStore { store in
            try await Change(store: store, options: change).make(guarded: replace) { present in
                let removed = replace ? present.mapValues { _ in Value?.none } : [:]
                return removed.merging(imported.mapValues { $0 }) { $1 }
            }
        }
    }

    private func read() throws -> [Text: Value] {
        let bytes = file == "-" ? try StandardInput.bytes() : try WholeFile.read(file)
        let name = file == "-" ? localized("Standard input") : localized("The file \"\(file)\"")
        if bytes.isEmpty { throw Failure(.usage, "\(name) is empty.") }
        do {
            let value = try FileFormat(of: bytes).read(bytes)
            guard case .dictionary(let values) = value else {
                throw Failure(.usage, "\(name) holds a value of type \(value.typeName), and not a dictionary.")
            }
            return values
        } catch let error as FileError {
            throw Failure(.usage, "\(name) can't be read: \(error).", advice: "Nothing was changed.")
        }
    }
}
