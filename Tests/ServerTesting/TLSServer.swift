// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Synchronization

/// The openssl program as a server on loopback, which answers every request with a page about the connection. The
/// process is killed on release.
public final class TLSServer: Sendable {
    /// The port on which it listens.
    public let port: UInt16
    /// The certificate of its authority in PEM.
    public let authority: [UInt8]
    /// A certificate in PEM with a key on a curve that it describes itself.
    public let curve: [UInt8]
    private let directory: String
    private let process: pid_t

    /// Starts a server, and waits until it takes connections.
    ///
    /// - Parameters:
    ///   - options: options of `openssl s_server` for the key agreement.
    ///   - hosts: whom its certificate is for.
    ///   - intermediates: the number of certificates between the server's and its authority's.
    ///   - names: the number of names in its certificate, and of those that each intermediate one excludes.
    ///   - extensions: more extensions of its certificate.
    ///   - sendsCurve: whether it sends ``curve``, too.
    public init(
        _ options: [String] = [], hosts: String = "DNS:localhost,IP:127.0.0.1", intermediates: Int = 0, names: Int = 0,
        extensions: String = "", sendsCurve: Bool = false
    ) throws {
        port = try Socket.freePort()
        directory = FileManager.default.temporaryDirectory.path + "/ubiquitous-store-tls-\(UUID().uuidString.prefix(8))"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        authority = try Certificates.make(
            in: directory, serverKey: ["-newkey", "rsa:2048", "-nodes"], hosts: hosts,
            intermediates: intermediates, names: names, extensions: extensions)
        curve = try Certificates.withOwnCurve(directory + "/curve.pem")
        let program = try Certificates.run(["which", "openssl"])
        let files = ["-cert", directory + "/cert.pem", "-key", directory + "/key.pem"]
        let others = directory + (sendsCurve ? "/curve.pem" : "/chain.pem")
        let chain = sendsCurve || intermediates > 0 ? ["-cert_chain", others] : []
        process = try ServerProcess.spawn(
            [program, "s_server", "-accept", "127.0.0.1:\(port)", "-www"] + files + chain + options,
            log: directory + "/output")
        for _ in 0..<6000 {
            if (try? Socket.connected(to: port)) != nil { return }
            usleep(10_000)
        }
    }

    deinit {
        ServerProcess.end(process)
        try? FileManager.default.removeItem(atPath: directory)
    }

    /// The server's URL.
    public var url: String { "https://127.0.0.1:\(port)" }
}
