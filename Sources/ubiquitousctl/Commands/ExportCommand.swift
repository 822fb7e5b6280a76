// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import PropertyList
internal import PropertyListFiles
internal import UbiquitousStore

/// `export`.
struct ExportCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Writes a store's values to a file or to standard output.",
        discussion: """
            "import" reads every format back exactly. The binary format can hold any value. XML can't hold control \
            characters in strings; a store that has some is not exported. In XML, dates finer than a second get a \
            fraction that Apple's programs don't read; the command warns. JSON has no dates, data or infinite reals; \
            each is an object with one key, such as {"$date": "2026-11-21T09:30:00Z"}, {"$data": "AAEC"} (Base64) or \
            {"$real": "nan"}, and a dictionary whose only key is one of these is {"$dictionary": [KEY, VALUE]}.

            An existing file is replaced only once all of it has been written.
            """)

    @OptionGroup var options: StoreOptions

    @Option(help: "xml, binary or json (default: json if the file's name ends in .json, else xml).")
    var format: FileFormat?

    @Argument(help: "The file; - is standard output.", completion: .file())
    var file: String = "-"

    func perform() async throws {
        let format = format ?? (file.hasSuffix(".json") ? .json : .xml)
        if file == "-" && format == .binary && isatty(STDOUT_FILENO) == 1 {
            throw Failure(.usage, "A binary property list can't be shown in a terminal.", advice: "Name a file.")
        }
        let values = try await options.withStore { try await $0.snapshot().values }
        let bytes = try write(values, format)
        if file == "-" { return Output.write(bytes: bytes) }
        try WholeFile.replace(file, with: bytes)
    }

    private func write(_ values: [Text: Value], _ format: FileFormat) throws -> [UInt8] {
        if format == .xml {
            let fine = values.filter { $0.value.hasFineDate }.keys.sorted().map { "\"\($0)\"" }
            if !fine.isEmpty {
                Output.remark(
                    """
                    Only this program reads the dates of \(fine.joined(separator: ", ")) exactly from XML: they aren't \
                    in whole seconds. --format binary is exact for all.
                    """)
            }
        }
        do {
            return try format.write(.dictionary(values))
        } catch {
            throw Failure(.refused, "The store can't be written as XML: \(error).")
        }
    }
}

extension Value {
    /// Whether the value contains a date that Apple's programs can't read from XML.
    fileprivate var hasFineDate: Bool {
        switch self {
        case .date(let seconds): DateText.text(seconds)?.contains(".") ?? true
        case .array(let values): values.contains(where: \.hasFineDate)
        case .dictionary(let values): values.values.contains(where: \.hasFineDate)
        default: false
        }
    }
}
