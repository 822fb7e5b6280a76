// SPDX-License-Identifier: Apache-2.0

internal import Files
internal import Foundation
internal import Glibc
internal import PropertyList
internal import PropertyListFiles
internal import UbiquitousStore

extension UserDefaults {
    /// Imports what this program stored with Foundation's class on Linux, in `$XDG_CONFIG_HOME/<program>.plist`
    /// (`~/.config` by default). Keys that the object's own domain already has stay as they are, so an app may call
    /// this at every start. A key that was removed since comes back, because the file stays too.
    ///
    /// - Returns: the imported keys, sorted; none as long as the service can't be reached.
    @discardableResult
    public func importFoundationFile() -> [String] {
        let program = ProcessDefaults.program.split(separator: "/").last.map(String.init) ?? ""
        guard let directory = Self.foundationDirectory, !program.isEmpty else { return [] }
        return importFoundationFile(directory + "/" + program + ".plist")
    }

    /// Imports the file at a path.
    /// - Returns: the imported keys, sorted.
    package func importFoundationFile(_ path: String) -> [String] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return [] }
        defer { close(descriptor) }
        do {
            guard let bytes = try Files.read(descriptor, atMost: 64 << 20) else { throw SystemError(EFBIG) }
            guard case .dictionary(let values) = try FileFormat(of: bytes).read(bytes) else {
                logDefaults("The file \(path) holds no dictionary, so nothing was imported from it.")
                return []
            }
            return take(values)
        } catch {
            logDefaults("The file \(path) can't be read, so nothing was imported from it: \(error)")
            return []
        }
    }

    private func take(_ values: [Text: Value]) -> [String] {
        // This waits for the service. What isn't known would be overwritten.
        let own = box.read { $0.own }
        guard box.process.isKnown(own) else {
            logDefaults("Foundation's file isn't imported yet, because the service doesn't answer.")
            return []
        }
        let present = box.read { $0.contents(of: .domain($0.own)).merging($0.contents(of: .ubiquitous)) { $1 } }
        var taken: [Text] = []
        for (key, value) in values.sorted(by: { $0.key < $1.key }) where present[key] == nil {
            do {
                try write([key: value])
                taken.append(key)
            } catch {
                refuse(key.string, error)
            }
        }
        return taken.map(\.string)
    }

    private static var foundationDirectory: String? {
        let environment = ProcessInfo.processInfo.trustedEnvironment
        return BaseDirectory.config.path { environment[$0] }
    }
}
