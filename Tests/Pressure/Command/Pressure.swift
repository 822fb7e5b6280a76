// SPDX-License-Identifier: Apache-2.0

public import ArgumentParser
internal import Glibc
public import UbiquitousStoreTesting

/// Puts a service under pressure, and reports how it copes.
@main
struct PressureCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pressure",
        abstract: "Puts a service under pressure, and says how it stands it.",
        discussion: "The service is $UBIQUITOUS_STORED, or else the one beside this program. Run it as root.",
        subcommands: [Messages.self, Load.self, Walls.self, Remotes.self, Flat.self, Client.self, Attacker.self])
}

/// The bus to use.
struct BusOptions: ParsableArguments {
    @Option(help: "dbus-daemon or dbus-broker.") var bus: PrivateBus.Program = .usual
    @Option(help: "The policy of the bus.") var policy = "dbus/org.example.UbiquitousStore.conf"
}

extension PrivateBus.Program: ExpressibleByArgument {}

/// Prints a line at once, without buffering.
func say(_ text: String) {
    print(text)
    fflush(nil)
}
