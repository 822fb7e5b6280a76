// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import Foundation
import ServerTesting
import StoreEngine
import SyncEngine
import Testing

@testable import HTTPClient
@testable import SyncBackends

/// What every backend has to stand, against every real server that is installed.
@Suite(.serialized, .timeLimit(.minutes(10)))
struct WebDAVServerTests {
    @Test func `which servers these tests ran against`() {
        print("WebDAV servers: \(WebDAVServer.Kind.installed.map(\.rawValue).joined(separator: ", "))")
        let missing = WebDAVServer.Kind.missing.map(\.rawValue)
        if !missing.isEmpty {
            print("WebDAV servers that are not installed (script/bootstrap --all): \(missing.joined(separator: ", "))")
        }
    }

    @Test(arguments: WebDAVServer.Kind.installed)
    func `a folder on a server conforms`(_ kind: WebDAVServer.Kind) async throws {
        let server = try WebDAVServer(kind)
        for (number, conformance) in BackendConformance.cases.enumerated() {
            let folder = "place-\(number)"
            // Where the first thing is to find no account, the place is there.
            if number == 0 { try server.makeFolder(folder) }
            let storage: @Sendable () throws -> WebDAVStorage = {
                WebDAVStorage(try WebDAVURL(server.url + "/" + folder), HTTPOptions())
            }
            let place = BackendPlace {
                BlobBackend(storage: try storage(), environment: .system)
            } empty: {
                // As somebody does who deletes folders: rclone does not look whether others have.
                let storage = try storage()
                for name in ["a/", "h/", "s/"] {
                    _ = try await storage.client.send(HTTPRequest("DELETE", storage.address(name)))
                }
            }
            do { try await conformance.run(on: place) } catch { Issue.record("\(kind): \(conformance): \(error)") }
        }
    }
}
