// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import PropertyList
import Replication
import ServerTesting
import StoreEngine
import SyncEngine
import Testing

@testable import BackendSupport
@testable import WebDAV

/// A page takes the place of everything that a server has.
@Suite(.timeLimit(.minutes(30)))
struct WebDAVLapseTests {
    static let kinds: [WebDAVServer.Kind] = [.lighttpd, .nginx, .nginxIndex, .nginxBare].filter { $0.program != nil }

    /// The paths that are answered with a page. All others are absent.
    enum Page: CaseIterable { case everywhere, inThePlace, atTheRoot }

    /// Answers like a server for files, which shows pages and knows no other methods.
    private static func fault(_ page: Page) -> @Sendable (ServerRequest) -> FaultProxy.Fault? {
        { request in
            guard request.method == "GET" else { return .answer(ServerAnswer(405)) }
            let isPage =
                switch page {
                case .everywhere: true
                case .inThePlace: request.path == "/dav/sync/"
                case .atTheRoot: request.path == "/"
                }
            // The name in the page looks like a blob's, but is a picture's.
            let text = "<!DOCTYPE html><img src='/d41d8cd98f00b204e9800998ecf8427e.png'>Back soon"
            return .answer(isPage ? ServerAnswer(200, ["Content-Type": "text/html"], text) : ServerAnswer(404))
        }
    }

    @Test(arguments: kinds, Page.allCases)
    func `a page in the place of a server is waited for, and no emptied account`(
        _ kind: WebDAVServer.Kind, _ page: Page
    ) async throws {
        let server = try WebDAVServer(kind)
        let proxy = try FaultProxy(before: server.port)
        defer { proxy.end() }
        let remote = EmptyRemote {
            try WebDAVBackend.make(url: "webdav://127.0.0.1:\(proxy.port)/dav/sync", credentials: .init())
        }
        let device = try await BackendConformance.devices(1, remote)[0]
        device.set("org.example.Notes", "a", .integer(1))
        try await device.sync()
        proxy.onRequest(Self.fault(page))
        // A service that starts meanwhile does not take the account for emptied either.
        let fresh = try remote.makeBackend()
        for _ in 0..<3 {
            #expect(await code { try await device.pull() } == .unavailable)
            // If only the root has the page, a device without an account is told that there is none.
            let opened = await code { _ = try await fresh.open(creatingAccount: false) }
            #expect(opened == (page == .atTheRoot ? .noAccount : .unavailable))
            #expect(await code { _ = try await fresh.pull(after: nil, as: Origin(bits: 1)) } == .unavailable)
        }
        proxy.onRequest(nil)
        try await device.pull()
        #expect(try await !fresh.open(creatingAccount: false).isNew)
        #expect(device.values("org.example.Notes") == ["a": .integer(1)])
    }

    private func code(_ body: () async throws -> Void) async -> RemoteError.Code? {
        do { try await body() } catch { return (error as? RemoteError)?.code }
        return nil
    }
}
