// SPDX-License-Identifier: Apache-2.0

public import ArgumentParser
internal import ControlCommands
internal import Files
internal import Glibc
package import Logging
internal import SDBus
internal import StoreBus
package import StoreDaemon

/// The command line of the service.
@main
struct Command: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ubiquitous-stored",
        abstract: "Keeps small stores of settings for apps, and syncs a user's devices.",
        discussion: """
            The service answers on D-Bus as org.example.UbiquitousStore. Every option but --check-configuration can \
            be given in the environment as well: --idle-exit 60 is UBIQUITOUS_STORED_IDLE_EXIT=60, a repeatable \
            option takes several values with colons between them, and a flag takes 1.
            """,
        version: Release.version)

    @Option(help: "The bus to serve on: system, session, or an address.")
    var bus = "system"

    @Option(help: "The directory of the data (default: $STATE_DIRECTORY, or else the mode's).")
    var stateDirectory: String?

    @Option(
        name: .customLong("manifest-directory"), parsing: .singleValue,
        help: "A directory of manifests; repeatable, and replaces the default list.")
    var manifestDirectories: [String] = []

    @Option(
        name: .customLong("managed-directory"), parsing: .singleValue,
        help: "A directory of managed settings; repeatable, and replaces the default list.")
    var managedDirectories: [String] = []

    @Option(help: "system or user; it decides about folders and manifests (default: system on the system bus).")
    var mode: Configuration.Mode?

    @Option(
        name: .customLong("folder-root"), parsing: .singleValue,
        help: "A folder under which accounts may be, in system mode; repeatable.")
    var folderRoots: [String] = []

    @Option(help: "The name that other devices show for this one (default: the host name).")
    var deviceName: String?

    @Flag(help: "Let programs open identifiers that no manifest declares; for development, in user mode.")
    var allowUndeclared = false

    @Option(help: "Exit after this many idle seconds; 0 means never (default: 300 if the bus can restart it, else 0).")
    var idleExit: Int?

    @Option(help: "trace, debug, info, notice, warning, error or critical (default: notice).")
    var logLevel: Logger.Level?

    @Option(
        name: .customLong("configuration"),
        help: "The settings file (default: the mode's). Options override it.")
    var settingsFile: String?

    @Flag(help: "Report all errors in the settings, and exit.")
    var checkConfiguration = false

    func validate() throws {
        if allowUndeclared && effectiveMode == .system {
            throw ValidationError("--allow-undeclared is for user mode and private buses: add --mode user.")
        }
        guard BusAddress.isNamed(by: bus) else {
            throw ValidationError(
                "The bus is system, session or an address, such as unix:path=/run/bus, and not \"\(bus)\".")
        }
        if let idleExit, idleExit < 0 { throw ValidationError("--idle-exit takes a number of seconds, 0 or more.") }
        if let deviceName, !(1...255).contains(deviceName.utf8.count) {
            throw ValidationError("--device-name takes 1 to 255 bytes.")
        }
        for path in folderRoots + manifestDirectories + managedDirectories where !path.hasPrefix("/") {
            throw ValidationError("\(path) is not an absolute path.")
        }
    }

    /// Runs the program with options from the command line and the environment, or as `ubiquitousctl` if called so.
    static func main() {
        StandardStreams.occupy()
        let program = CommandLine.arguments.first?.split(separator: "/").last
        if program == "ubiquitousctl" || program == "defaults" { return ControlProgram.main() }
        StandardStreams.widen()
        main(ProcessEnvironment.complete(Array(CommandLine.arguments.dropFirst())))
    }

    func run() throws {
        // The service's files are private, however it was started.
        umask(0o077)
        // Writing to a closed connection is an error for the writer, and must not end the service.
        signal(SIGPIPE, SIG_IGN)
        if checkConfiguration { return try checkSettings() }
        let state = try existing(stateDirectory ?? defaultStateDirectory())
        // SQLite's temporary files have values: they belong where the databases are (https://sqlite.org/tempfiles.html).
        setenv("SQLITE_TMPDIR", state, 1)
        let configuration = try complaining { try makeConfiguration(state) }
        let code = EventLoop.runOnThisThread(handling: [SIGTERM, SIGINT, SIGHUP]) {
            do {
                let daemon = try Daemon(configuration) { try makeConfiguration(state) }
                try await daemon.serve()
                Running.daemon = daemon
                return nil
            } catch {
                configuration.logger.critical("\(error)")
                notifyServiceManager("STATUS=\(error)")
                return 1
            }
        }
        throw ExitCode(code)
    }
}

/// Keeps the service for as long as the process runs.
@BusActor
private enum Running {
    static var daemon: Daemon?
}

extension Configuration.Mode: ExpressibleByArgument {}
extension Logger.Level: @retroactive ExpressibleByArgument {}
