// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// An authority of its own for each server, made by the openssl program.
enum Certificates {
    /// Makes `cert.pem` and `key.pem` for 127.0.0.1 and localhost.
    /// - Returns: the authority's certificate.
    static func make(in directory: String) throws -> [UInt8] {
        let (ca, key) = ("\(directory)/ca.pem", "\(directory)/ca.key")
        let usual = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        try run(
            ["openssl", "req", "-x509", "-days", "2", "-subj", "/CN=Tests", "-keyout", key, "-out", ca] + usual)
        try run(
            ["openssl", "req", "-subj", "/CN=localhost", "-keyout", "\(directory)/key.pem", "-out", "\(directory)/csr"]
                + usual)
        let names = "subjectAltName=DNS:localhost,IP:127.0.0.1\n"
        try names.write(toFile: "\(directory)/names", atomically: false, encoding: .utf8)
        try run([
            "openssl", "x509", "-req", "-days", "2", "-in", "\(directory)/csr", "-CA", ca, "-CAkey", key,
            "-CAcreateserial", "-extfile", "\(directory)/names", "-out", "\(directory)/cert.pem",
        ])
        chmod("\(directory)/key.pem", 0o644)
        return Array(try Data(contentsOf: URL(filePath: ca)))
    }

    /// Runs a program.
    /// - Returns: what it has written, without the end of the line.
    @discardableResult
    static func run(_ arguments: [String], input: String = "") throws -> String {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = arguments
        let (inlet, outlet) = (Pipe(), Pipe())
        (process.standardInput, process.standardOutput, process.standardError) = (inlet, outlet, FileHandle.nullDevice)
        try process.run()
        inlet.fileHandleForWriting.write(Data(input.utf8))
        try inlet.fileHandleForWriting.close()
        let output = outlet.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw CocoaError(.executableLoad) }
        return String(decoding: output, as: UTF8.self).trimmingCharacters(in: .newlines)
    }
}
