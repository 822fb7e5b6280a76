// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import Sealing
import ServerTesting
import StoreEngine
import SyncEngine
import Testing

@testable import BackendSupport
@testable import Blobs
@testable import HTTPClient
@testable import WebDAV

/// What sync over a server costs, in requests and bytes on the wire.
@Suite(.timeLimit(.minutes(30)))
struct WebDAVCostTests {
    static let kind = [WebDAVServer.Kind.apache, .lighttpd, .nginx].first { $0.program != nil }

    @Test(
        .enabled(if: kind != nil, "no WebDAV server is installed; script/bootstrap --all installs them"),
        arguments: [Protection.none, .testKey])
    func `a look costs a request, a small change few, and a first download less than one for each store`(
        _ protection: Protection
    ) async throws {
        let server = try WebDAVServer(#require(Self.kind))
        let proxy = try FaultProxy(before: server.port)
        defer { proxy.end() }
        let url = "webdav://127.0.0.1:\(proxy.port)/dav/sync"
        // Encryption may add up to 400 bytes to a head.
        let most = (4 << 10) + (protection.isWanted ? 400 : 0)
        try await expectBlobCosts(
            through: proxy, most: most, methods: (["PROPFIND", "PUT"], ["PROPFIND", "GET"])
        ) { environment in
            BlobBackend(
                storage: WebDAVStorage(try WebDAVURL(url), HTTPOptions()), environment: environment,
                protection: protection)
        }
    }
}
