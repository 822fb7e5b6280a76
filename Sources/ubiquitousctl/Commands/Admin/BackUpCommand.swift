// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import SDBus
internal import StoreBus
internal import UbiquitousStore

/// `admin backup`.
struct BackUpCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup",
        abstract: "Writes the data of all users to an archive, while the service runs.",
        discussion: """
            The archive is a tar file, compressed if its name ends in .gz, .bz2, .xz or .zst. It contains the \
            passwords and keys of accounts, so protect it as you protect those. Data that can't be read is reported \
            and left out; the command then exits with 3.
            """)

    @OptionGroup var bus: BusOptions

    @Argument(help: "The archive to create. It must not exist yet.", completion: .file())
    var file: String

    func validate() throws {
        guard file == "-" else { return }
        throw ValidationError(
            localized("A backup contains passwords, so it can't be written to standard output. Name a file."))
    }

    func perform() async throws {
        try ServiceOwner.checkCompression(of: file)
        let object = AdministrationObject(try await bus.connect())
        let complaints = try await Progress.showing("Copying the data") {
            let owner = try await ServiceOwner(object)
            let archive = try makeArchive()
            defer { close(archive) }
            do {
                let directory = try owner.backup(try await object.backUp(timeout: .seconds(3600)))
                // From here on signals are deferred, so that no copy is left behind.
                return try Interruption.deferring { try write(directory, to: archive, owner) }
            } catch {
                unlink(file)
                throw error
            }
        }
        for complaint in complaints { Output.complain("This was not copied: \(Output.printable(complaint))") }
        if !complaints.isEmpty { throw ReportedFailure(outcome: .refused) }
    }

    private func makeArchive() throws -> Int32 {
        let archive = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard archive >= 0 else {
            let error = errno
            throw Failure(
                .usage, "\(Output.quoted(file)) can't be made: \(String(cString: strerror(error))).",
                advice: error == EEXIST ? "Name another file: a backup never overwrites one." : nil)
        }
        return archive
    }

    /// Writes a copy of the data to the archive, and removes it.
    /// - Returns: what the copy lacks.
    private func write(_ directory: String, to archive: Int32, _ owner: ServiceOwner) throws -> [String] {
        defer { _ = owner.run(["rm", "-rf", "--", directory]) }
        let list = try owner.perform {
            let path = "\(directory)/\(DataNames.notCopied)"
            return access(path, F_OK) == 0 ? try WholeFile.read(path) : []
        }
        let tar = ["tar"] + ServiceOwner.compression(of: file) + ["-C", directory, "--sparse", "-c", "."]
        guard owner.run(tar, output: archive) == 0, fsync(archive) == 0 else {
            unlink(file)
            throw Failure(.refused, "Tar could not write \(Output.quoted(file)).")
        }
        return String(decoding: list, as: UTF8.self).split(separator: "\n").map(String.init)
    }
}
