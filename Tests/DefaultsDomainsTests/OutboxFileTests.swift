// SPDX-License-Identifier: Apache-2.0

import DefaultsDomains
import Foundation
import PropertyList
import Testing

struct OutboxFileTests {
    private func write(_ key: Text, _ value: Int64) -> Outbox.Write {
        Outbox.Write(key: key, value: .integer(value), isHost: false, time: 1, generation: 1)
    }

    private func withDirectory(_ body: (String) throws -> Void) throws {
        let path = NSTemporaryDirectory() + "outbox-\(UUID())"
        defer { try? FileManager.default.removeItem(atPath: path) }
        try body(path)
    }

    @Test func `names of domains are names of files, and long ones their digest`() {
        #expect(OutboxFile.fileName("org.example.Editor") == "org.example.Editor")
        #expect(OutboxFile.fileName(".hidden a%/ü") == "%2ehidden%20a%25%2f%c3%bc")
        let long = String(repeating: "a", count: 201)
        #expect(OutboxFile.fileName(long) == sha256(long.utf8) && OutboxFile.fileName(long).utf8.count == 64)
        let encoded = String(repeating: "ü", count: 34)
        #expect(OutboxFile.fileName(encoded) == sha256(encoded.utf8))
    }

    /// The examples of FIPS 180-4, and lengths around that of a block.
    @Test(arguments: [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
        (String(repeating: "a", count: 55), "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"),
        (String(repeating: "a", count: 64), "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"),
    ])
    func `the digest is SHA-256`(text: String, digest: String) { #expect(sha256(text.utf8) == digest) }

    @Test func `writes are added, read, and removed without those that came meanwhile`() throws {
        try withDirectory { directory in
            let file = OutboxFile(domain: "d", directory: directory)
            #expect(!file.exists && file.read() == nil)
            #expect(file.add([write("a", 1), write("b", 1)]) && file.add([write("c", 1)]))
            try file.remove([write("a", 1), write("b", 1)])
            #expect(file.read()?.writes == [write("c", 1)])
            try file.remove([write("c", 1)])
            #expect(!file.exists)
        }
    }

    @Test func `another domain's file is left alone, whatever both are called`() throws {
        try withDirectory { directory in
            let (short, long) = (
                OutboxFile(domain: "d", directory: directory), OutboxFile(domain: "d.v1", directory: directory)
            )
            #expect(long.add([write("a", 1)]) && short.read() == nil && short.add([write("b", 1)]))
            #expect(long.read()?.writes == [write("a", 1)] && short.read()?.writes == [write("b", 1)])
            // As on a file system that ignores case.
            try FileManager.default.moveItem(atPath: directory + "/d.plist", toPath: directory + "/D.plist")
            let other = OutboxFile(domain: "D", directory: directory)
            #expect(other.read() == nil && other.add([write("c", 1)]))
            #expect(other.read()?.writes == [write("c", 1)])
            try FileManager.default.moveItem(atPath: directory + "/D.plist", toPath: directory + "/d.plist")
            #expect(short.read()?.writes == [write("b", 1)])
        }
    }

    @Test func `an outbox is read while another process is stopped that changes it`() throws {
        try withDirectory { directory in
            let file = OutboxFile(domain: "d", directory: directory)
            #expect(file.add([write("a", 1)]))
            let lock = open(directory + "/d.lock", O_RDWR)
            defer { close(lock) }
            #expect(flock(lock, LOCK_EX) == 0)
            #expect(file.read()?.writes == [write("a", 1)])
        }
    }

    @Test func `one process at a time delivers`() throws {
        try withDirectory { directory in
            let file = OutboxFile(domain: "d", directory: directory)
            #expect(file.delivery() == nil && file.add([write("a", 1)]))
            let first = try #require(file.delivery())
            #expect(file.delivery() == nil)
            withExtendedLifetime(first) {}
        }
    }

    @Test func `a directory that is another user's, or a link, is not used`() throws {
        try withDirectory { directory in
            let file = OutboxFile(domain: "d", directory: directory + "/link")
            try FileManager.default.createDirectory(atPath: directory + "/place", withIntermediateDirectories: true)
            try FileManager.default.createSymbolicLink(
                atPath: directory + "/link", withDestinationPath: directory + "/place")
            #expect(!file.add([write("a", 1)]) && file.read() == nil && file.delivery() == nil)
        }
    }

    @Test func `what keeps an outbox from being read is a clause`() {
        let bytes: [UInt8] = Array("no property list".utf8)
        let error = #expect(throws: Outbox.Failure.self) { try Outbox(bytes, domain: "d") }
        #expect(error.map { "\($0)" }?.contains("unreadable(") == false)
        #expect("\(Outbox.Failure.version(2))" == "it is of version 2")
    }

    @Test func `an outbox that can't be read doesn't replace one that was kept before`() throws {
        try withDirectory { directory in
            let file = OutboxFile(domain: "d", directory: directory)
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
            for number in 1...11 {
                try Data("torn \(number)".utf8).write(to: URL(filePath: directory + "/d.plist"))
                #expect(file.read() == nil)
            }
            let kept = try FileManager.default.contentsOfDirectory(atPath: directory).filter {
                $0.contains("unreadable")
            }
            #expect(kept.count == 9)
            for (name, number) in [(".2", 2), (".9", 11), ("", 1)] {
                let path = directory + "/d.plist.unreadable" + name
                #expect(try String(contentsOfFile: path, encoding: .utf8) == "torn \(number)")
            }
        }
    }

    @Test func `what is no file is no outbox`() throws {
        try withDirectory { directory in
            let file = OutboxFile(domain: "d", directory: directory)
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
            #expect(mkfifo(directory + "/d.plist", 0o600) == 0)
            #expect(file.read() == nil)
        }
    }

    @Test func `where nothing may be written, an outbox is read and never delivered`() throws {
        // Root may write everywhere.
        if geteuid() == 0 { return }
        try withDirectory { directory in
            let file = OutboxFile(domain: "d", directory: directory)
            #expect(file.add([write("a", 1)]))
            chmod(directory, 0o500)
            defer { chmod(directory, 0o700) }
            #expect(file.read()?.writes == [write("a", 1)] && file.delivery() == nil)
            #expect(!file.add([write("b", 1)]))
        }
    }

    @Test func `there is no place for outboxes without a home`() {
        #expect(OutboxFile.standardDirectory([:]) == nil && OutboxFile.standardDirectory(["HOME": "relative"]) == nil)
        #expect(OutboxFile.standardDirectory(["HOME": "/h"]) == "/h/.local/state/ubiquitous-store/outbox")
        #expect(
            OutboxFile.standardDirectory(["HOME": "/h", "XDG_STATE_HOME": "/s"]) == "/s/ubiquitous-store/outbox")
    }
}
