// SPDX-License-Identifier: Apache-2.0

import Foundation
import Replication
import SDBus
import Sealing
import Testing

@testable import StoreDaemon

@Suite final class AccountKeysTests {
    private let directory = FileManager.default.temporaryDirectory.appending(path: "keys-\(UUID())").path
    private var keys: AccountKeys { keys(of: "") }

    private func keys(of account: String) -> AccountKeys {
        AccountKeys(directory: directory, account: account, environment: .system, logProblem: { _ in })
    }

    init() throws { try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true) }

    deinit { try? FileManager.default.removeItem(atPath: directory) }

    /// Returns a key, and an account encrypted with it.
    private func account() throws -> (AccountKeyFile, AccountFile) {
        let held = HeldKey(time: 5, random: Environment.system.random)
        let file = signedIn(to: "\(held.key.identifier)", isEncrypted: true)
        return (AccountKeyFile(key: held.key, marker: held.marker, stage: .using), file)
    }

    private func signedIn(to account: String, isEncrypted: Bool? = nil) -> AccountFile {
        AccountFile(
            url: "folder:///a", account: account, credentials: BackendCredentials(), deviceName: "here",
            isEncrypted: isEncrypted)
    }

    private let plain = "\(KeyIdentifier(high: 1, low: 2))"

    // MARK: The files

    @Test(arguments: ["account.plist", "account-key.plist"])
    func `a file that somebody else made is damaged, however deep or large it is`(name: String) throws {
        let path = directory + "/" + name
        let depth = 100_000
        let nested = String(repeating: "<array>", count: depth) + String(repeating: "</array>", count: depth)
        let lists = ["<plist version=\"1.0\">\(nested)</plist>", String(repeating: "(", count: depth)]
        for text in lists {
            try Data(text.utf8).write(to: URL(filePath: path))
            chmod(path, 0o600)
            #expect(throws: (any Error).self) { try read(name) }
        }
        try Data("bplist00".utf8).write(to: URL(filePath: path))
        chmod(path, 0o600)
        truncate(path, 3 << 30)
        #expect(throws: (any Error).self) { try read(name) }
    }

    /// Foundation's reader would copy the text for each of them.
    @Test func `a file that names a long text again and again is damaged`() throws {
        /// Returns a binary property list of an array with one string several times.
        func file(_ count: UInt8) -> [UInt8] {
            let array = [0xAF, 0x10, count] + Array(repeating: 1, count: Int(count))
            let string = [0x5F, 0x11, 0xFF, 0xFF] + Array(repeating: UInt8(ascii: "x"), count: 0xFFFF)
            let end = 8 + array.count + string.count
            let offsets = [0, 0, 8, 0, 0, 8 + UInt8(array.count)]
            let trailer =
                [0, 0, 0, 0, 0, 0, 3, 1, 0, 0, 0, 0, 0, 0, 0, 2] + Array(repeating: 0, count: 13)
                + [UInt8(end >> 16), UInt8(end >> 8 & 255), UInt8(end & 255)]
            return Array("bplist00".utf8) + array + string + offsets + trailer
        }
        #expect(PrivateFile.decode([String].self, from: file(10))?.count == 10)
        #expect(PrivateFile.decode([String].self, from: file(100)) == nil)
    }

    private func read(_ name: String) throws {
        if name == AccountFile.name {
            _ = try AccountFile.read(in: directory)
        } else {
            _ = try AccountKeyFile.read(in: directory)
        }
    }

    // MARK: Protection

    @Test func `an unencrypted account has no key, and an encrypted one is locked without its own`() throws {
        guard case (.none, nil) = keys.protection(of: signedIn(to: plain)) else { return #expect(Bool(false)) }
        let (key, file) = try account()
        try self.account().0.write(in: directory)
        guard case (.locked, let problem?) = keys.protection(of: file) else { return #expect(Bool(false)) }
        #expect(problem.code == .keyNeeded)
        try key.write(in: directory)
        guard case (.key(let held), nil) = keys.protection(of: file) else { return #expect(Bool(false)) }
        #expect(held == key.held)
    }

    @Test func `a key that is damaged locks the account, also while it moves`() throws {
        var (_, file) = try account()
        file.movingTo = plain
        try Data([1]).write(to: URL(filePath: directory + "/account-key.plist"))
        chmod(directory + "/account-key.plist", 0o600)
        guard case (.locked, let problem?) = keys.protection(of: file) else { return #expect(Bool(false)) }
        #expect(problem.message.contains("damaged"))
    }

    @Test func `a move is one as long as the next key is there`() throws {
        let (next, _) = try account()
        try signedIn(to: plain).write(in: directory)
        #expect(!keys.areWatched)
        try keys.begin(next, of: signedIn(to: plain))
        let moving = try #require(try AccountFile.read(in: directory))
        #expect(keys.move(of: moving) == .encryption && keys.areWatched)
        guard case (.moving(let move), nil) = keys.protection(of: moving) else { return #expect(Bool(false)) }
        // Whatever names the account had when the move began, it has this one now.
        var held = next.held
        held.former.plain.insert(try #require(KeyIdentifier(plain)))
        #expect(move == KeyMove(from: nil, to: held))
        let stayed = try keys.withdraw(from: moving)
        #expect(try AccountFile.read(in: directory) == stayed)
        #expect(keys.move(of: stayed) == nil && !keys.areWatched && keys.next(of: moving) == nil)
        guard case (.none, nil) = keys.protection(of: moving) else { return #expect(Bool(false)) }
    }

    @Test func `a new account's key is drawn once for an address, and stays until the account is entered`() throws {
        let options = try EncryptionOptions(encrypts: true, phrase: nil)
        func key(at url: String) throws -> HeldKey? {
            guard case .key(let held) = try keys.protection(at: url, options) else { return nil }
            return held
        }
        let first = try #require(try key(at: "folder:///a"))
        #expect(try key(at: "folder:///a/") == first && key(at: "folder:///b") != first)
        try AccountKeyFile.remove(in: directory)
        #expect(try key(at: "folder:///a") == first && keys.candidates(at: "folder:///a") == [first])
        #expect(keys.candidates(at: "folder:///c") == [])
        for number in 0..<20 { _ = try key(at: "folder:///\(number)") }
        let files = try FileManager.default.contentsOfDirectory(atPath: directory)
        #expect(files.count { $0.hasPrefix("attempted-key-") } == 16 && keys.candidates(at: "folder:///19").count == 1)
        let held = try #require(keys.candidates(at: "folder:///19").first)
        // The only copy stays until the key is in its place.
        keys.settle("\(held.key.identifier)")
        #expect(keys.candidates(at: "folder:///19") == [held])
        try keys.keep(held, wasShown: false)
        keys.settle("\(held.key.identifier)")
        #expect(keys.candidates(at: "folder:///19") == [])
    }

    @Test func `a key that could not be put in place is not overwritten by the next one`() throws {
        let (key, file) = try account()
        try file.write(in: directory)
        try keys.keep(key.held, wasShown: false)
        // As on a full disk.
        let obstacle = directory + "/account-key.plist.new"
        try FileManager.default.createDirectory(atPath: obstacle + "/in the way", withIntermediateDirectories: true)
        keys.settle(file.account)
        let (next, _) = try account()
        #expect(throws: (any Error).self) { try keys.begin(next, of: file) }
        #expect(throws: (any Error).self) { try keys.keep(next.held, wasShown: false) }
        #expect(keys.current(of: file)?.key == key.key)
        try FileManager.default.removeItem(atPath: obstacle)
        try keys.begin(next, of: file)
        #expect(keys.current(of: file)?.key == key.key)
    }

    @Test func `a move whose key is gone is known, and one whose key can't be read now is not`() throws {
        let (next, _) = try account()
        try keys.begin(next, of: signedIn(to: plain))
        let moving = try #require(try AccountFile.read(in: directory))
        let path = directory + "/next-account-key.plist"
        #expect(!keys.hasLostNext(of: moving) && !keys.hasLostNext(of: signedIn(to: plain)))
        chmod(path, 0o644)
        #expect(!keys.hasLostNext(of: moving))
        chmod(path, 0o600)
        truncate(path, 10)
        #expect(keys.hasLostNext(of: moving))
        unlink(path)
        #expect(keys.hasLostNext(of: moving))
    }

    @Test func `signing in anew takes the key of the account at that address, and a phrase takes none`() throws {
        let (key, file) = try account()
        try file.write(in: directory)
        try key.write(in: directory)
        guard
            case .key(let held) = try keys.protection(
                at: "folder:///a/", try EncryptionOptions(encrypts: false, phrase: nil))
        else { return #expect(Bool(false)) }
        #expect(held == key.held)
        guard case .none = try keys.protection(at: "folder:///b", try EncryptionOptions(encrypts: false, phrase: nil))
        else {
            return #expect(Bool(false))
        }
        let words = RecoveryPhrase(of: key.key).words.joined(separator: " ")
        guard
            case .phrase = try keys.protection(at: "folder:///a", try EncryptionOptions(encrypts: true, phrase: words))
        else { return #expect(Bool(false)) }
    }

    // MARK: The keys

    @Test func `a key is kept with the forms before it, and one that is there stays as it is`() throws {
        let (key, file) = try account()
        let former = FormerForms(plain: [KeyIdentifier(high: 1, low: 2)], keys: [KeyIdentifier(high: 3, low: 4)])
        try keys.keep(key.held, wasShown: false, former: former)
        try keys.keep(key.held, wasShown: true)
        let kept = try #require(keys.current(of: file))
        #expect(kept.former == former && !kept.wasShown && kept.stage == .using)
        keys.settle(file.account)
        #expect(try AccountKeyFile.read(in: directory) == kept)
        // A key that is already stored isn't written again as the next key, where it would block a new one.
        try keys.keep(key.held, wasShown: true)
        #expect(try AccountKeyFile.read(.next, in: directory) == nil)
    }

    @Test func `what an account was before names itself and all forms before that`() throws {
        let (none, forms) = keys.former(of: signedIn(to: plain))
        #expect(none == nil && forms == FormerForms(plain: [KeyIdentifier(high: 1, low: 2)]))
        var (key, file) = try account()
        (key.left, key.wasPlain) = ([KeyIdentifier(high: 3, low: 4)], [KeyIdentifier(high: 5, low: 6)])
        try key.write(in: directory)
        let (former, all) = keys.former(of: file)
        #expect(former == key.key)
        #expect(all == FormerForms(plain: key.wasPlain, keys: key.left.union([key.key.identifier])))
    }

    @Test func `a move is called so until what this device has is in the remote under the key`() throws {
        var (key, file) = try account()
        #expect(keys.move(of: file) == nil)
        (key.stage, key.left, key.wasPlain) = (.moving, [], [KeyIdentifier(high: 1, low: 1)])
        try key.write(in: directory)
        #expect(keys.move(of: file) == .encryption)
        key.left = [KeyIdentifier(high: 1, low: 2)]
        try key.write(in: directory)
        #expect(keys.move(of: file) == .replacement)
        file.movingTo = plain
        #expect(keys.move(of: file) == .replacement)
    }

    @Test func `the phrase is told once the account has gone over, and that it was seen is remembered`() throws {
        func isRefused() -> Bool { (try? keys.recoveryPhrase(marksShown: true)) == nil }
        #expect(isRefused())
        try signedIn(to: plain).write(in: directory)
        #expect(isRefused())
        var (key, file) = try account()
        try file.write(in: directory)
        #expect(isRefused())
        key.stage = .moving
        try key.write(in: directory)
        #expect(isRefused())
        key.stage = .using
        try key.write(in: directory)
        let words = RecoveryPhrase(of: key.key).words.joined(separator: " ")
        #expect(try keys.recoveryPhrase(marksShown: false) == words)
        #expect(try AccountKeyFile.read(in: directory)?.wasShown == false)
        #expect(try keys.recoveryPhrase(marksShown: true) == words)
        #expect(try AccountKeyFile.read(in: directory)?.wasShown == true)
        file.movingTo = plain
        try file.write(in: directory)
        #expect(isRefused())
    }

    @Test func `where the account's file is damaged, its key is that of the account in the database`() throws {
        let (key, file) = try account()
        let (other, _) = try account()
        try key.write(.next, in: directory)
        try other.write(.current, in: directory)
        try Data("junk".utf8).write(to: URL(filePath: directory + "/" + AccountFile.name))
        let words = RecoveryPhrase(of: key.key).words.joined(separator: " ")
        #expect(try keys(of: file.account).recoveryPhrase(marksShown: false) == words)
        let (foreign, _) = try account()
        #expect(throws: BusError.self) { try keys.checkMayReplace(with: foreign.held) }
        for held in [key.held, other.held, nil] { try keys.checkMayReplace(with: held) }
        #expect(keys.candidates(at: "folder:///b").count == 2)
        #expect(keys(of: file.account).isUnreadableEncrypted && !keys(of: plain).isUnreadableEncrypted)
        #expect(throws: RemoteError.self) { try keys(of: plain).recoveryPhrase(marksShown: true) }
        // A new database doesn't know the account.
        let present = RecoveryPhrase(of: other.key).words.joined(separator: " ")
        #expect(try keys.recoveryPhrase(marksShown: false) == present)
        // Others may have the account's next key already.
        var next = key
        next.stage = .moving
        try next.write(.next, in: directory)
        #expect(throws: RemoteError.self) { try keys(of: file.account).recoveryPhrase(marksShown: true) }
    }
}
