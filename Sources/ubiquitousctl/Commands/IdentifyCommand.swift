// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import PropertyList
internal import UbiquitousStore

/// `identify`.
struct IdentifyCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "identify",
        abstract: "Shows how the service identifies this program, and which stores it may open.")

    @OptionGroup var bus: BusOptions

    @Flag(help: "Print an object of JSON.")
    var json = false

    func perform() async throws {
        let caller = try await Progress.showing("Waiting for the service") {
            try await bus.connect().manager.identify()
        }
        if json { return Output.print(json: caller.json) }
        let style = Style(for: 1)
        Output.print(style.dim("User           ") + "\(caller.uid)")
        Output.print(style.dim("Runs on        ") + caller.engine)
        Output.print(style.dim("App            ") + (caller.applicationIdentifier.orNone))
        Output.print(style.dim("Default store  ") + (caller.defaultIdentifier.orNone))
        Output.print(style.dim("May open       ") + (caller.mayOpenAny ? "any" : caller.entitled.isEmpty ? "none" : ""))
        for identifier in caller.entitled { Output.print("  \(Output.printableWord(identifier))") }
    }
}

extension String {
    fileprivate var orNone: String { isEmpty ? "none" : Output.printableWord(self) }
}

extension CallerDescription {
    fileprivate var json: Value {
        [
            "uid": .integer(Int64(uid)), "engine": .string(Text(engine)),
            "app-id": .string(Text(applicationIdentifier)), "default-identifier": .string(Text(defaultIdentifier)),
            "entitled": .array(entitled.map { .string(Text($0)) }), "any": .boolean(mayOpenAny),
        ]
    }
}
