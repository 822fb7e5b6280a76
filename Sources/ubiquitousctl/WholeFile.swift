// SPDX-License-Identifier: Apache-2.0

internal import Files
internal import Glibc

/// Files that are read and written as a whole.
enum WholeFile {
    /// In bytes. A store has at most a mebibyte, and no format makes more than thirty times of it.
    private static let maximumSize = 64 << 20

    /// Reads all of a file.
    static func read(_ path: String) throws -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure("The file \"\(path)\" can't be opened: \(reason).") }
        defer { close(descriptor) }
        return try readAll(descriptor, localized("The file \"\(path)\""))
    }

    /// Reads a descriptor to its end.
    static func readAll(_ descriptor: Int32, _ name: String) throws -> [UInt8] {
        let bytes: [UInt8]?
        do throws(SystemError) { bytes = try Files.read(descriptor, atMost: maximumSize) } catch {
            throw Failure(.usage, "\(name) can't be read: \(error).")
        }
        guard let bytes else { throw Failure(.usage, "\(name) is far larger than any store.") }
        return bytes
    }

    /// Replaces a file's contents. Readers see either the old contents or the new ones, never a part.
    ///
    /// The new file is written beside the old one and renamed. Signals are deferred meanwhile.
    static func replace(_ path: String, with bytes: [UInt8]) throws {
        let target = FileName.resolved(path)
        var status = stat()
        let exists = stat(target, &status) == 0
        // A pipe or a device can't be replaced, so write into it.
        if exists && status.st_mode & S_IFMT != S_IFREG { return try write(bytes, into: target) }
        let mode = exists ? status.st_mode & 0o777 : 0o666 & ~currentMask()
        try Interruption.deferring { try write(bytes, beside: target, mode: mode) }
    }

    private static func write(_ bytes: [UInt8], beside target: String, mode: mode_t) throws {
        var template = Array((target + ".XXXXXX").utf8CString)
        let descriptor = mkstemp(&template)
        guard descriptor >= 0 else { throw failure("The file \"\(target)\" can't be written: \(reason).") }
        let part = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        defer { close(descriptor) }
        do {
            try writeAll(bytes, descriptor, target)
            guard fchmod(descriptor, mode) == 0, fsync(descriptor) == 0, rename(part, target) == 0 else {
                throw failure("The file \"\(target)\" can't be written: \(reason).")
            }
        } catch {
            unlink(part)
            throw error
        }
    }

    private static func write(_ bytes: [UInt8], into path: String) throws {
        let descriptor = open(path, O_WRONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure("The file \"\(path)\" can't be written: \(reason).") }
        defer { close(descriptor) }
        try writeAll(bytes, descriptor, path)
    }

    private static func writeAll(_ bytes: [UInt8], _ descriptor: Int32, _ path: String) throws {
        do throws(SystemError) { try Files.write(descriptor, bytes) } catch {
            throw Failure(.usage, "The file \"\(path)\" can't be written: \(error).")
        }
    }

    private static func currentMask() -> mode_t {
        let mask = umask(0o077)
        umask(mask)
        return mask
    }

    /// The reason why the last system call failed.
    private static var reason: String { String(cString: strerror(errno)) }

    private static func failure(_ sentence: Sentence) -> Failure { Failure(.usage, sentence) }
}

/// Names of files.
enum FileName {
    /// Returns a path with its links resolved, or the path itself if that fails.
    static func resolved(_ path: String) -> String {
        guard let resolved = realpath(path, nil) else { return path }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    /// The directory that the program was started in.
    static var currentDirectory: String { resolved(".") }
}

/// Standard input, from a pipe or a terminal.
enum StandardInput {
    static func bytes() throws -> [UInt8] {
        if isatty(STDIN_FILENO) == 1 { Output.remark("Reading what is typed; end it with Ctrl-D") }
        return try everything()
    }

    private static func everything() throws -> [UInt8] {
        try WholeFile.readAll(STDIN_FILENO, "Standard input")
    }

    /// Returns standard input as text, without the newline at the end.
    static func text() throws -> String {
        guard var text = String(validating: try bytes(), as: UTF8.self) else {
            throw Failure(.usage, "Standard input is not UTF-8.")
        }
        // Swift considers CR LF one character.
        if text.last == "\n" || text.last == "\r\n" { text.removeLast() }
        return text
    }
}
