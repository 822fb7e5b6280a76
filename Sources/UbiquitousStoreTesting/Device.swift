// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Glibc
internal import Synchronization

/// A device: a real `ubiquitous-stored` on a private bus, with directories of its own.
///
/// The program is `$UBIQUITOUS_STORED`, or else the one beside the tests, or else the installed one. It is killed when
/// this object is released.
public final class Device: Sendable {
    /// How to start a device.
    public struct Options: Sendable {
        /// `--device-name`.
        public var name = "device"
        /// `--mode`.
        public var mode = "user"
        /// `--log-level`.
        public var logLevel = "trace"
        /// The user that the service runs as; `nil` is the user of the tests.
        public var user: UInt32?
        /// The installed manifests.
        public var manifests: [ManifestText] = []
        /// Additional options.
        public var arguments: [String] = []
        /// Additional environment variables.
        public var environment: [String: String] = [:]
        /// A state directory to use instead.
        public var stateDirectory: String?
        /// Omits `--state-directory`, `--manifest-directory` and similar options, for tests of these.
        public var isBare = false
        /// The program, if it is not the tested one.
        package var program: String?

        /// Makes the default options.
        public init() {}
    }

    /// The bus that the service is on.
    public let bus: PrivateBus
    /// Where the service keeps its data.
    public let stateDirectory: String
    /// `$RUNTIME_DIRECTORY`. Remove its contents to simulate a reboot.
    public let runtimeDirectory: String
    /// Where the manifests are installed.
    public let manifestDirectory: String
    /// Where the managed settings are.
    public let managedDirectory: String
    /// A directory that is removed with the device.
    public let directory: TemporaryDirectory

    private let options: Options
    private let notifications: NotifySocket
    private let process = Mutex<ChildProcess?>(nil)
    private let secrets = Mutex<Set<String>>([])

    /// Makes the directories, starts the service and waits until it serves.
    /// - Throws: ``StartFailure``, with the service's output, or ``DeadlinePassed``.
    public static func start(on bus: PrivateBus, _ options: Options = Options()) async throws -> Device {
        let device = try Device(on: bus, options)
        try await device.start()
        return device
    }

    /// Makes the directories.
    /// - Throws: `CocoaError` or ``StartFailure`` if they can't be made.
    public init(on bus: PrivateBus, _ options: Options = Options()) throws {
        self.bus = bus
        self.options = options
        directory = try TemporaryDirectory()
        stateDirectory =
            try options.stateDirectory ?? directory.makeDirectory("state", mode: 0o700, owner: options.user)
        runtimeDirectory = try directory.makeDirectory("run", mode: 0o700, owner: options.user)
        manifestDirectory = try directory.makeDirectory("manifests")
        managedDirectory = try directory.makeDirectory("managed")
        notifications = try NotifySocket(directory.path + "/notify")
        for (index, manifest) in options.manifests.enumerated() {
            try install(manifest.xml, as: "app\(index).plist")
        }
    }

    // MARK: Starting and ending

    /// Starts the service and waits until it has said that it serves.
    /// - Throws: ``StartFailure``, with the service's output, or ``DeadlinePassed``.
    public func start() async throws {
        let process = try launch()
        try await eventually("the service is ready") {
            // With nothing to do it may have ended since.
            if notifications.received.contains("READY=1") { return true }
            if let exit = process.exit {
                throw StartFailure(description: "ubiquitous-stored ended with \(exit): \(log)")
            }
            return false
        }
    }

    /// Starts the service without waiting, for tests of failing starts.
    /// - Throws: ``StartFailure`` if there is no program, or it can't be started.
    @discardableResult
    public func launch() throws -> ChildProcess {
        notifications.forget()
        let child = try ChildProcess(
            [try options.program ?? Self.program()] + commandLine,
            as: options.user,
            environment: variables,
            output: (directory.path + "/output", directory.path + "/log")
        )
        process.withLock { $0 = child }
        return child
    }

    private var commandLine: [String] {
        if options.isBare { return options.arguments }
        // Another program may be older than managed settings.
        let managed = options.program == nil ? ["--managed-directory", managedDirectory] : []
        return [
            "--bus", bus.address, "--state-directory", stateDirectory, "--manifest-directory", manifestDirectory,
            "--mode", options.mode, "--device-name", options.name, "--idle-exit", "0", "--log-level", options.logLevel,
        ] + managed + options.arguments
    }

    private var variables: [String: String] {
        let own = [
            "NOTIFY_SOCKET": notifications.path, "RUNTIME_DIRECTORY": runtimeDirectory, "PATH": "/usr/bin:/bin",
            "LD_LIBRARY_PATH": ProcessInfo.processInfo.environment["LD_LIBRARY_PATH"] ?? "",
            // Report a crash in one line instead of spending a minute on a backtrace.
            "SWIFT_BACKTRACE": "enable=no",
        ]
        return own.merging(options.environment) { $1 }
    }

    /// Returns the path of the tested program.
    /// - Throws: ``StartFailure``, which says how to name one.
    public static func program() throws(StartFailure) -> String {
        if let program = ProcessInfo.processInfo.environment["UBIQUITOUS_STORED"] { return program }
        if let built = try? ChildProcess.built("ubiquitous-stored") { return built }
        let installed = "/usr/libexec/ubiquitous-stored"
        if access(installed, X_OK) == 0 { return installed }
        throw StartFailure(
            description: """
                There is no service to test with. Leave the default traits of the package ubiquitous-store on, so that \
                it is built, or install the package ubiquitous-store, or name the program in $UBIQUITOUS_STORED.
                """)
    }

    /// Ends the service with SIGTERM, and waits until it has ended.
    /// - Returns: how it ended.
    /// - Throws: ``StartFailure`` if it was not started, ``DeadlinePassed`` if it doesn't end.
    @discardableResult
    public func stop() async throws -> ChildProcess.Exit {
        signal(SIGTERM)
        return try await finish()
    }

    /// Waits until the service has ended.
    /// - Returns: how it ended.
    /// - Throws: ``StartFailure`` if it was not started, ``DeadlinePassed`` if it doesn't end.
    public func finish() async throws -> ChildProcess.Exit {
        guard let process = process.withLock({ $0 }) else {
            throw StartFailure(description: "The service was not started")
        }
        return try await process.finish()
    }

    /// Kills the service: SIGKILL.
    public func kill() {
        process.withLock { $0 }?.kill()
    }

    /// Kills the service and starts it again.
    /// - Throws: ``StartFailure``, with the service's output, or ``DeadlinePassed``.
    public func restart() async throws {
        kill()
        try await start()
    }

    /// Sends the service a signal.
    public func signal(_ number: Int32) {
        process.withLock { $0 }?.send(number)
    }

    /// The service's process id; 0 before it was started.
    public var pid: Int32 { process.withLock { $0?.pid ?? 0 } }

    /// How the service ended; `nil` while it runs.
    public var exit: ChildProcess.Exit? { process.withLock { $0 }?.exit }

    // MARK: Manifests

    /// Installs a manifest atomically.
    /// - Parameter mode: the file's mode.
    /// - Throws: `CocoaError` if it can't be written.
    public func install(_ text: String, as name: String, mode: UInt32 = 0o644) throws {
        let path = "\(manifestDirectory)/\(name)"
        try Data(text.utf8).write(to: URL(filePath: path + ".part"))
        chmod(path + ".part", mode)
        guard rename(path + ".part", path) == 0 else { throw CocoaError(.fileWriteUnknown) }
    }

    // MARK: Output

    /// What the service has written to standard error since its first start.
    public var log: String { text("log") }

    /// What the service has written to standard output.
    public var output: String { text("output") }

    private func text(_ name: String) -> String {
        let data = FileManager.default.contents(atPath: "\(directory.path)/\(name)") ?? Data()
        return String(decoding: data, as: UTF8.self)
    }

    /// The assignments that the service has sent to its service manager since its last start.
    public var notified: [String] { notifications.received }

    /// Makes ``leakedSecrets`` search the service's output for a value or a secret.
    public func keepSecret(_ text: String) {
        secrets.withLock { _ = $0.insert(text) }
    }

    /// The values and secrets that the service has written to standard error or output. There must be none.
    public var leakedSecrets: [String] {
        let said = log + output
        return secrets.withLock { $0.filter { said.contains($0) }.sorted() }
    }
}
