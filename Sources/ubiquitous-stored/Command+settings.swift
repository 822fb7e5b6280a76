// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Files
internal import Glibc
internal import Logging
internal import SDBus
internal import StoreDaemon

extension Command {
    /// Returns the files' settings, overridden by the command line, and what is wrong in the files, in sentences.
    func effectiveSettings() throws -> (settings: Settings, errors: [String]) {
        var (settings, errors, _) = try readSettings() ?? (Settings(), [], SettingsPlaces())
        if let logLevel { settings.logLevel = logLevel }
        if let deviceName { settings.deviceName = deviceName }
        if let idleExit { settings.ask(forIdleExit: .seconds(idleExit)) }
        overrideFolderRoots(of: &settings)
        return (settings, errors)
    }

    /// Takes the folder roots of the command line or the environment, if there are any.
    private func overrideFolderRoots(of settings: inout Settings) {
        if folderRoots.isEmpty { return }
        if !settings.folderRoots.isEmpty, settings.folderRoots != folderRoots {
            logger.notice(
                """
                FolderRoot= in the settings isn't used, because --folder-root or UBIQUITOUS_STORED_FOLDER_ROOT names others.
                """)
        }
        settings.folderRoots = folderRoots
    }

    /// Reports everything that is wrong with the settings, as the service's user finds them.
    func checkSettings() throws {
        if effectiveMode == .system { ServiceUser.become() }
        guard let path = effectiveSettingsFile, let (written, errors, places) = try complaining(readSettings) else {
            return print(
                "There are no settings\(effectiveSettingsFile.map { " in \($0)" } ?? ""); the defaults apply.")
        }
        var settings = written
        let state = try stateDirectory ?? defaultStateDirectory()
        overrideFolderRoots(of: &settings)
        let contradictions =
            settings.contradictions + settings.accountContradictions(Backends.make)
            + DefaultAuthority(settings.defaultAccount).errors
        let all =
            errors + contradictions.map(places.naming)
            + settings.folderRoots.compactMap { FolderRootCheck.problem($0, besides: state) }
        if all.isEmpty { return print("\(path) is valid.") }
        for error in all { logger.critical("\(error)") }
        throw ExitCode(Self.configurationError)
    }

    /// Ends the program with a log line if the settings can't be used.
    func complaining<T>(_ body: () throws -> T) throws -> T {
        do { return try body() } catch let error as BadSettings {
            logger.critical("\(error)")
            notifyServiceManager("STATUS=\(error)")
            throw ExitCode(Self.configurationError)
        }
    }

    /// EX_CONFIG of sysexits(3).
    private static let configurationError: Int32 = 78

    private var logger: Logger { Logger(label: "ubiquitous-stored") { _ in JournalLogHandler(logLevel: .notice) } }

    /// The file of settings from the command line, or the mode's.
    private var effectiveSettingsFile: String? {
        if let settingsFile { return settingsFile }
        let name = "ubiquitous-store/ubiquitous-stored.conf"
        if effectiveMode == .system { return "/etc/\(name)" }
        return (try? userDirectory(.config)).map { "\($0)/\(name)" }
    }

    /// Reads the file, and the files in the directory of its name with ".d", sorted by name.
    /// - Returns: the settings, the errors, and where keys are set; `nil` if there is no file and the command line names
    ///   none.
    private func readSettings() throws -> (settings: Settings, errors: [String], places: SettingsPlaces)? {
        guard let path = effectiveSettingsFile else { return nil }
        var files: [SettingsFile] = []
        var unreadable: [String] = []
        func note(_ path: String, _ reason: some Error) {
            unreadable.append(
                "The settings in \(path) can't be read: \(reason). Until they can, a service that starts uses no account."
            )
        }
        var paths = [path]
        do { paths += try SettingsText.dropIns(of: path) } catch { note(path + ".d", error) }
        for path in paths {
            do { files.append(SettingsFile(path: path, text: try SettingsText.read(path))) } catch .missing {
                if path == settingsFile {
                    throw BadSettings(description: "The settings in \(path) can't be read: there is no such file.")
                }
            } catch {
                note(path, error)
            }
        }
        if files.isEmpty && unreadable.isEmpty { return nil }
        var places = SettingsPlaces()
        var (settings, errors) = Settings.read(files, &places)
        // It isn't known which accounts the unreadable files allow.
        if !unreadable.isEmpty { settings.backends = [] }
        return (settings, unreadable + errors.map { "\($0)." }, places)
    }
}

/// Why the settings can't be used, as a sentence.
private struct BadSettings: Error, CustomStringConvertible {
    let description: String
}

/// Reads files of settings from the disk.
private enum SettingsText {
    enum Failure: Error, CustomStringConvertible {
        case missing
        case unreadable(String)

        var description: String {
            switch self {
            case .missing: "there is no such file"
            case .unreadable(let reason): reason
            }
        }
    }

    private static let maximumSize = 64 << 10

    /// Returns the *.conf files in the directory of a file's name with ".d", sorted by name.
    static func dropIns(of path: String) throws(SystemError) -> [String] {
        try DirectoryListing.list(path + ".d").filter { $0.hasSuffix(".conf") && !$0.hasPrefix(".") }.sorted()
            .map { "\(path).d/\($0)" }
    }

    static func read(_ path: String) throws(Failure) -> String {
        // Non-blocking, because the file may be a FIFO.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw failure(SystemError(), of: path) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw .unreadable("it is not a regular file")
        }
        let bytes: [UInt8]?
        do throws(SystemError) { bytes = try Files.read(descriptor, atMost: maximumSize) } catch {
            throw .unreadable(error.description)
        }
        guard let bytes else { throw .unreadable("it has more than \(maximumSize) bytes") }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw .unreadable("it is not UTF-8 text")
        }
        return text
    }

    private static func failure(_ error: SystemError, of path: String) -> Failure {
        guard [ENOENT, ENOTDIR].contains(error.number) else { return .unreadable(error.description) }
        var status = stat()
        return lstat(path, &status) == 0 ? .unreadable("it is a link to a file that doesn't exist") : .missing
    }
}
