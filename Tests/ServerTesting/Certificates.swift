// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// Makes an authority for each server, with the openssl program.
enum Certificates {
    private static let usualKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]

    /// Makes `cert.pem` and `key.pem`, and `chain.pem` with the intermediate certificates.
    /// - Parameters:
    ///   - hosts: whom the server's certificate is for.
    ///   - names: how many names it has besides, each of which is compared with as many that each intermediate
    ///     certificate excludes, or the authority's if there is none.
    /// - Returns: the authority's certificate.
    static func make(
        in directory: String, serverKey: [String] = usualKey, hosts: String = "DNS:localhost,IP:127.0.0.1",
        intermediates: Int = 0, names: Int = 0, extensions: String = ""
    ) throws -> [UInt8] {
        let authority = "\(directory)/ca"
        // To compare names takes longer the later they differ.
        let prefix = String(repeating: "a", count: 20)
        try run(
            [
                "openssl", "req", "-x509", "-days", "2", "-subj", "/CN=Tests", "-keyout", authority + ".key", "-out",
                authority + ".pem",
            ] + usualKey
                + (names > 0 && intermediates == 0
                    ? [
                        "-addext",
                        "nameConstraints=" + (0..<names).map { "excluded;DNS:\(prefix)b\($0)" }.joined(separator: ","),
                    ] : []))
        var (issuer, chain) = (authority, "")
        for number in 0..<intermediates {
            let next = "\(directory)/intermediate\(number)"
            let excluded = (0..<names).map { "excluded;DNS.\($0)=\(prefix)b\($0)\n" }.joined()
            let constraints = names == 0 ? "" : "nameConstraints=@excluded\n[excluded]\n" + excluded
            let extensions = "basicConstraints=critical,CA:TRUE\n" + constraints
            try sign(next, "Intermediate \(number)", usualKey, extensions, by: issuer)
            issuer = next
            chain = try String(contentsOfFile: issuer + ".pem", encoding: .utf8) + chain
        }
        try chain.write(toFile: "\(directory)/chain.pem", atomically: false, encoding: .utf8)
        let others = (0..<names).map { ",DNS:\(prefix)c\($0)" }.joined()
        try sign(
            "\(directory)/server", "localhost", serverKey,
            "subjectAltName=\(hosts)\(others)\n\(extensions)", by: issuer)
        let files = FileManager.default
        try files.moveItem(atPath: "\(directory)/server.pem", toPath: "\(directory)/cert.pem")
        try files.moveItem(atPath: "\(directory)/server.key", toPath: "\(directory)/key.pem")
        chmod("\(directory)/key.pem", 0o644)
        return Array(try Data(contentsOf: URL(filePath: authority + ".pem")))
    }

    /// Makes a certificate with a key on a curve that it describes itself, and returns it.
    static func withOwnCurve(_ path: String) throws -> [UInt8] {
        try run([
            "openssl", "ecparam", "-name", "prime256v1", "-param_enc", "explicit", "-genkey", "-noout", "-out",
            path + ".key",
        ])
        try run(["openssl", "req", "-x509", "-subj", "/CN=Curve", "-key", path + ".key", "-out", path])
        return Array(try Data(contentsOf: URL(filePath: path)))
    }

    /// Makes a key, and a certificate for it that the issuer has signed.
    private static func sign(
        _ path: String, _ name: String, _ key: [String], _ extensions: String, by issuer: String
    ) throws {
        try run(["openssl", "req", "-subj", "/CN=\(name)", "-keyout", path + ".key", "-out", path + ".csr"] + key)
        try extensions.write(toFile: path + ".ext", atomically: false, encoding: .utf8)
        try run([
            "openssl", "x509", "-req", "-days", "2", "-in", path + ".csr", "-CA", issuer + ".pem", "-CAkey",
            issuer + ".key", "-CAcreateserial", "-extfile", path + ".ext", "-out", path + ".pem",
        ])
    }

    /// Runs a program.
    /// - Returns: the program's output, without line feeds around it.
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
