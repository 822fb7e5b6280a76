// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Sealing
import Testing

@testable import StoreDaemon

@Suite final class AccountKeyFileTests {
    private let directory = FileManager.default.temporaryDirectory.appending(path: "key-file-\(UUID())").path
    private var path: String { directory + "/account-key.plist" }

    init() throws { try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true) }

    deinit { try? FileManager.default.removeItem(atPath: directory) }

    private static func sample(shown: Bool = true) throws -> AccountKeyFile {
        let key = try #require(
            AccountKey(secret: Array("sixteen secrets!".utf8), identifier: KeyIdentifier(high: 1, low: 2)))
        return AccountKeyFile(
            key: key, marker: SealedMarker(of: key, time: 5, links: []), left: [KeyIdentifier(high: 0, low: 9)],
            rejected: [KeyIdentifier(high: 0, low: 7), KeyIdentifier(high: 3, low: 0)],
            awaited: KeyIdentifier(high: 0, low: 8), stage: .moving, wasShown: shown)
    }

    private func plist() throws -> [String: Any] {
        let data = try Data(contentsOf: URL(filePath: path))
        return try #require(try PropertyListSerialization.propertyList(from: data, format: nil) as? [String: Any])
    }

    private func write(_ plist: [String: Any]) throws {
        let data = try PropertyListSerialization.data(fromPropertyList: plist, format: .binary, options: 0)
        try data.write(to: URL(filePath: path))
    }

    @Test func `a key is read as it was written, and is gone when it is removed`() throws {
        #expect(try AccountKeyFile.read(in: directory) == nil)
        var file = try Self.sample()
        try file.write(in: directory)
        #expect(try AccountKeyFile.read(in: directory) == file)
        (file.stage, file.left, file.rejected, file.wasShown) = (.using, [], [], false)
        try file.write(in: directory)
        #expect(try AccountKeyFile.read(in: directory) == file)
        try AccountKeyFile.remove(in: directory)
        #expect(try AccountKeyFile.read(in: directory) == nil)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory) == [])
    }

    @Test func `the file is its owner's alone, whatever was there before`() throws {
        #expect(FileManager.default.createFile(atPath: path, contents: Data(), attributes: [.posixPermissions: 0o666]))
        try Self.sample().write(in: directory)
        var status = stat()
        #expect(stat(path, &status) == 0)
        #expect(status.st_mode & 0o777 == 0o600)
    }

    @Test func `what a crash has left of a new file is not read, and goes with the key`() throws {
        let file = try Self.sample()
        try file.write(in: directory)
        try Data([1, 2, 3]).write(to: URL(filePath: path + ".new"))
        #expect(try AccountKeyFile.read(in: directory) == file)
        try AccountKeyFile.remove(in: directory)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory) == [])
    }

    @Test func `a file that can't be replaced stays as it was`() throws {
        let file = try Self.sample()
        try file.write(in: directory)
        try FileManager.default.createDirectory(atPath: path + ".new", withIntermediateDirectories: false)
        #expect(throws: (any Error).self) { try Self.sample(shown: false).write(in: directory) }
        #expect(try AccountKeyFile.read(in: directory) == file)
    }

    @Test func `a file that is torn anywhere is damaged`() throws {
        try Self.sample().write(in: directory)
        let whole = try Data(contentsOf: URL(filePath: path))
        for length in 0..<whole.count {
            try whole.prefix(length).write(to: URL(filePath: path))
            chmod(path, 0o600)
            #expect(throws: AccountKeyFileError.damaged(path), "\(length)") {
                try AccountKeyFile.read(in: self.directory)
            }
        }
    }

    @Test func `a file whose secret, identifier or marker is another's is damaged`() throws {
        try Self.sample().write(in: directory)
        let whole = try plist()
        let other = try #require(
            AccountKey(secret: [UInt8](repeating: 1, count: 16), identifier: KeyIdentifier(high: 1, low: 2)))
        for (name, value) in [
            ("secret", Data(other.secretData) as Any), ("secret", Data([1])),
            ("identifier", "\(KeyIdentifier(high: 1, low: 3))"),
            ("identifier", "x"), ("marker", Data(SealedMarker(of: other, time: 5, links: []).bytes)),
            ("marker", Data()),
            ("stage", "resting"), ("left", ["x"]), ("rejected", [1]), ("format", 0), ("format", "1"), ("wasShown", 5),
        ] {
            try write(whole.merging([name: value]) { $1 })
            #expect(throws: AccountKeyFileError.damaged(path), "\(name)") {
                try AccountKeyFile.read(in: self.directory)
            }
        }
    }

    @Test func `a file of a newer version is told apart, and not touched`() throws {
        try Self.sample().write(in: directory)
        try write(["format": 2, "keys": ["of some form"]])
        let before = try Data(contentsOf: URL(filePath: path))
        #expect(throws: AccountKeyFileError.tooNew(path)) { try AccountKeyFile.read(in: self.directory) }
        #expect(try Data(contentsOf: URL(filePath: path)) == before)
    }

    @Test(arguments: [0o640, 0o604, 0o620, 0o660])
    func `a file that others may read or write is not used`(mode: Int) throws {
        try Self.sample().write(in: directory)
        chmod(path, mode_t(mode))
        #expect(throws: AccountKeyFileError.open(path)) { try AccountKeyFile.read(in: self.directory) }
    }

    @Test(.enabled(if: geteuid() == 0, "only root can give a file away"))
    func `a file of another owner is not used`() throws {
        try Self.sample().write(in: directory)
        #expect(chown(path, 65_534, 65_534) == 0)
        #expect(throws: AccountKeyFileError.foreign(path)) { try AccountKeyFile.read(in: self.directory) }
    }

    @Test func `a link, a folder, a pipe and a file of 2 MiB are not used`() throws {
        try Self.sample().write(in: directory)
        try FileManager.default.moveItem(atPath: path, toPath: path + ".old")
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: path + ".old")
        #expect(throws: AccountKeyFileError.unreadable(path, ELOOP)) { try AccountKeyFile.read(in: self.directory) }
        unlink(path)
        #expect(mkfifo(path, 0o600) == 0)
        #expect(throws: AccountKeyFileError.foreign(path)) { try AccountKeyFile.read(in: self.directory) }
        unlink(path)
        #expect(mkdir(path, 0o700) == 0)
        #expect(throws: AccountKeyFileError.foreign(path)) { try AccountKeyFile.read(in: self.directory) }
        rmdir(path)
        try Data(count: 2 << 20).write(to: URL(filePath: path))
        chmod(path, 0o600)
        #expect(throws: AccountKeyFileError.damaged(path)) { try AccountKeyFile.read(in: self.directory) }
    }

    @Test func `what is printed of the file and its errors has no secret in it`() throws {
        let file = try Self.sample()
        var said = "\(file) \(String(reflecting: file))"
        dump(file, to: &said)
        for error in [
            AccountKeyFileError.damaged(path), .open(path), .foreign(path), .tooNew(path), .unreadable(path, 5),
        ] {
            said += "\(error) \(String(reflecting: error))"
        }
        let secret = file.key.secretData
        for form in ["sixteen", "\(secret)", secret.map { String(format: "%02x", $0) }.joined(), "115, 105"] {
            #expect(!said.contains(form))
        }
    }
}
