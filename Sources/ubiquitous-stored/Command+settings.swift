// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Files
internal import Glibc
internal import Logging
internal import StoreDaemon

extension Command {
    /// The settings of the file, with what the command line says in place of them.
    func effectiveSettings() throws -> Settings {
        var settings = try readSettings() ?? Settings()
        if let logLevel { settings.logLevel = logLevel }
        if let deviceName { settings.deviceName = deviceName }
        if let idleExit { settings.idleExit = idleExit == 0 ? nil : .seconds(idleExit) }
        if !folderRoots.isEmpty { settings.folderRoots = folderRoots }
        return settings
    }

    /// Says whether the file of settings is right.
    func checkSettings() throws {
        guard let path = effectiveSettingsFile, try complaining(readSettings) != nil else {
            return print(
                "There are no settings\(effectiveSettingsFile.map { " in \($0)" } ?? ""): what is usual holds.")
        }
        print("\(path) is right.")
    }

    /// Ends with a line that says what is wrong with the settings.
    func complaining<T>(_ body: () throws -> T) throws -> T {
        do { return try body() } catch let error as BadSettings {
            Logger(label: "ubiquitous-stored") { _ in JournalLogHandler(logLevel: .notice) }.critical("\(error)")
            // EX_CONFIG of sysexits(3).
            throw ExitCode(78)
        }
    }

    /// The file that is named, or the mode's.
    private var effectiveSettingsFile: String? {
        if let settingsFile { return settingsFile }
        let name = "ubiquitous-store/ubiquitous-stored.conf"
        if effectiveMode == .system { return "/etc/\(name)" }
        return (try? userDirectory("XDG_CONFIG_HOME", ".config")).map { "\($0)/\(name)" }
    }

    /// - Returns: `nil` if there is no file, and none was named.
    private func readSettings() throws -> Settings? {
        guard let path = effectiveSettingsFile else { return nil }
        let text: String
        do { text = try SettingsText.read(path) } catch .missing where settingsFile == nil { return nil } catch {
            throw BadSettings(description: "The settings in \(path) can't be read: \(error)")
        }
        do { return try Settings(file: text) } catch { throw BadSettings(description: "\(path), \(error)") }
    }
}

/// What is wrong with the settings, in a sentence.
private struct BadSettings: Error, CustomStringConvertible {
    let description: String
}

/// A file of settings as it is on the disk.
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

    static func read(_ path: String) throws(Failure) -> String {
        // Not blocking: it may be a FIFO.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            throw errno == ENOENT || errno == ENOTDIR ? .missing : .unreadable(String(cString: strerror(errno)))
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw .unreadable("it is no regular file")
        }
        let bytes: [UInt8]?
        do throws(SystemError) { bytes = try Files.read(descriptor, atMost: maximumSize) } catch {
            throw .unreadable(error.description)
        }
        guard let bytes else { throw .unreadable("it has more than \(maximumSize) bytes") }
        return String(decoding: bytes, as: UTF8.self)
    }
}
