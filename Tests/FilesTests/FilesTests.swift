// SPDX-License-Identifier: Apache-2.0

import Files
import Foundation
import Testing

@Suite struct FilesTests {
    private let directory = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path

    /// Runs `body` with a new directory.
    private func withDirectory(_ body: () throws -> Void) throws {
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try body()
    }

    @Test func `a call that signals interrupt is repeated, and one that always says so fails`() throws {
        var left = 3
        let result = try Files.check {
            left -= 1
            errno = EINTR
            return left == 0 ? 7 : -1
        }
        #expect(result == 7)
        let error = #expect(throws: SystemError.self) {
            try Files.check { () -> Int32 in
                errno = EINTR
                return -1
            }
        }
        #expect(error?.number == EINTR)
    }

    @Test func `what a pipe takes in pieces is written whole`() throws {
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        let (reading, writing) = (ends[0], ends[1])
        let bytes = (0..<1 << 20).map { UInt8(truncatingIfNeeded: $0 * 7) }
        let thread = Thread {
            do { try Files.write(writing, bytes) } catch { Issue.record(error) }
            close(writing)
        }
        thread.start()
        #expect(try Files.read(reading, atMost: bytes.count) == bytes)
        close(reading)
    }

    @Test func `a write that is cut short says why it does not go on`() async {
        await #expect(processExitsWith: .success) {
            let path = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path
            defer { for end in ["", ".new"] { unlink(path + end) } }
            // RLIMIT_FSIZE: the first call writes four bytes, and the next one fails with the reason.
            signal(SIGXFSZ, SIG_IGN)
            var limit = rlimit(rlim_cur: 4, rlim_max: 4)
            try #require(setrlimit(__rlimit_resource_t(1), &limit) == 0)
            errno = 0
            #expect(throws: SystemError(EFBIG)) { try Files.replace(path, with: [1, 2, 3, 4, 5], by: path + ".new") }
            #expect(access(path, F_OK) != 0 && access(path + ".new", F_OK) != 0)
        }
    }

    @Test func `a file in a directory that is not there can't be written`() {
        #expect(throws: SystemError(ENOENT)) {
            try Files.replace(directory + "/none/file", with: [1], by: directory + "/none/file.new")
        }
    }

    @Test func `a file is replaced as a whole, and what it was written to first is gone`() throws {
        try withDirectory {
            let (path, temporary) = (directory + "/file", directory + "/file.new")
            for bytes: [UInt8] in [[1, 2, 3], [], [4]] {
                try Files.replace(path, with: bytes, by: temporary)
                #expect(FileManager.default.contents(atPath: path) == Data(bytes))
                #expect(!FileManager.default.fileExists(atPath: temporary))
            }
        }
    }

    @Test func `a copy has the holes of its file, and replaces nothing`() throws {
        try withDirectory {
            let (path, copy) = (directory + "/file", directory + "/copy")
            for pieces: [(Int, [UInt8])] in [[], [(0, [1])], [(1 << 36, [1])], [(5, [1, 2]), (3 << 30, [3])]] {
                try Files.write(path, [])
                let file = try #require(FileHandle(forUpdatingAtPath: path))
                for (offset, bytes) in pieces {
                    try file.seek(toOffset: UInt64(offset))
                    try file.write(contentsOf: bytes)
                }
                try file.truncate(atOffset: 1 << 40)
                try Files.copy(path, to: copy)
                var (old, new) = (stat(), stat())
                #expect(stat(path, &old) == 0 && stat(copy, &new) == 0)
                #expect(new.st_size == 1 << 40 && new.st_blocks <= old.st_blocks + 8 && new.st_mode & 0o777 == 0o600)
                let copied = try #require(FileHandle(forReadingAtPath: copy))
                for (offset, bytes) in pieces {
                    try copied.seek(toOffset: UInt64(offset))
                    #expect(try copied.read(upToCount: bytes.count) == Data(bytes))
                }
                #expect(throws: SystemError(EEXIST)) { try Files.copy(path, to: copy) }
                unlink(copy)
            }
        }
    }

    @Test func `a directory is made with those above it, and one below a file can't be`() throws {
        try withDirectory {
            let path = directory + "/a/b"
            for _ in 0..<2 { try Files.makeDirectories(path) }
            var status = stat()
            #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o700)
            try Files.write(path + "/file", [])
            let error = #expect(throws: SystemError.self) { try Files.makeDirectories(path + "/file/c") }
            #expect(error?.number == ENOTDIR)
        }
    }

    @Test func `a file that is larger than what is asked for is none, and so is a link`() throws {
        try withDirectory {
            let path = directory + "/file"
            try Files.overwrite(path, with: "12345")
            #expect(Files.text(of: path, atMost: 5) == "12345" && Files.text(of: path, atMost: 4) == nil)
            try Files.overwrite(path, with: "1")
            #expect(Files.text(of: path, atMost: 5) == "1")
            try FileManager.default.createSymbolicLink(atPath: directory + "/link", withDestinationPath: path)
            #expect(Files.text(of: directory + "/link", atMost: 5) == nil)
        }
    }
}
