// SPDX-License-Identifier: Apache-2.0

internal import AppManifest
internal import Files
internal import Glibc
internal import Logging
internal import Replication
internal import SDBus
internal import StoreBus
internal import StoreDaemon

extension Command {
    var effectiveMode: Configuration.Mode { mode ?? (bus == "system" ? .system : .user) }

    /// Makes the configuration from the present settings, overridden by the command line.
    func makeConfiguration(_ state: String) throws -> Configuration {
        let (settings, errors) = try effectiveSettings()
        let authority = DefaultAuthority(settings.defaultAccount)
        var configuration = Configuration(
            bus: BusAddress(bus), mode: effectiveMode, stateDirectory: state,
            runtimeDirectory: runtimeDirectory, manifestDirectories: effectiveManifestDirectories,
            deviceName: settings.deviceName ?? hostName, allowsUndeclared: allowUndeclared, settings: settings,
            defaultAuthority: authority.bytes, settingsErrors: errors + authority.errors,
            version: Release.version, backendSchemes: Backends.schemes, makeBackend: Backends.make,
            checkBackend: Backends.check,
            logger: Logger(label: "ubiquitous-stored") { _ in JournalLogHandler(logLevel: settings.logLevel) })
        if effectiveMode == .system {
            configuration.checkFolderRoots = { [roots = settings.folderRoots] in
                // The configuration leaves out those that aren't apart from the state directory.
                let mounts = MountTable.current
                return roots.compactMap {
                    FolderRootCheck.link($0) ?? mounts.problems(ofFolderRoots: [$0]).first
                        ?? FolderRootCheck.problem($0, besides: state)
                }
            }
        }
        if !managedDirectories.isEmpty { configuration.managedDirectories = managedDirectories }
        return configuration
    }

    // MARK: Directories

    func defaultStateDirectory() throws -> String {
        if let directory = ProcessEnvironment["STATE_DIRECTORY"], !directory.isEmpty {
            return String(directory.split(separator: ":")[0])
        }
        if effectiveMode == .system { return "/var/lib/ubiquitous-store" }
        return try userDirectory(.state) + "/ubiquitous-store"
    }

    private var runtimeDirectory: String? {
        if let directory = ProcessEnvironment["RUNTIME_DIRECTORY"], !directory.isEmpty {
            return String(directory.split(separator: ":")[0])
        }
        if effectiveMode == .system { return try? existing("/run/ubiquitous-stored") }
        guard let directory = ProcessEnvironment["XDG_RUNTIME_DIR"], directory.hasPrefix("/") else { return nil }
        return try? existing(directory + "/ubiquitous-stored")
    }

    private var effectiveManifestDirectories: [String] {
        if !manifestDirectories.isEmpty { return manifestDirectories }
        if effectiveMode == .system { return InstalledManifests.systemDirectories }
        return InstalledManifests.directories { ProcessEnvironment[$0] }
    }

    func userDirectory(_ directory: BaseDirectory) throws -> String {
        guard let path = directory.path(in: { ProcessEnvironment[$0] }) else {
            throw DaemonError(
                "Neither \(directory.variable) nor HOME is set; name the directory with --state-directory.")
        }
        return path
    }

    /// Returns the directory, which is made with its parents if it is missing.
    func existing(_ path: String) throws -> String {
        try? Files.makeDirectories(path)
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
            throw DaemonError("The directory \(path) can't be made: \(String(cString: strerror(errno))).")
        }
        return path
    }

    private var hostName: String {
        var name = [CChar](repeating: 0, count: 256)
        guard gethostname(&name, name.count - 1) == 0, name[0] != 0 else { return "This device" }
        return name.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } } ?? "This device"
    }
}
