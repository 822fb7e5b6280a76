// SPDX-License-Identifier: Apache-2.0

import SDBus
import Testing

@testable import StoreDaemon

/// What may be stored as credentials.
@Suite struct CredentialsTests {
    private static let certificate = """
        -----BEGIN CERTIFICATE-----
        AAAA
        -----END CERTIFICATE-----

        """

    private func isTaken(_ text: String) -> Bool {
        (try? BackendCredentials(certificateAuthority: Array(text.utf8)).check()) != nil
    }

    @Test func `what a server repeats of its credentials is left out of the log`() {
        let credentials = BackendCredentials(user: "ada", password: "hunter2")
        #expect(credentials.removed(from: "no leader for ada:hunter2") == "no leader for ada:…")
        #expect(credentials.removed(from: "Basic YWRhOmh1bnRlcjI=") == "Basic …")
        #expect(BackendCredentials(token: "0123456789").removed(from: "Bearer 0123456789.") == "Bearer ….")
        #expect(BackendCredentials().removed(from: "Og==") == "Og==")
    }

    @Test func `certificates that each connection has decoded anew are few and small`() throws {
        #expect(isTaken(String(repeating: Self.certificate, count: 16)))
        #expect(!isTaken(String(repeating: Self.certificate, count: 17)))
        #expect(isTaken(String(repeating: "A", count: 64 << 10)))
        #expect(!isTaken(String(repeating: "A", count: (64 << 10) + 1)))
        let error = #expect(throws: BusError.self) {
            try BackendCredentials(certificateAuthority: [UInt8](repeating: 65, count: 65537)).check()
        }
        #expect(
            error?.message
                == "The option \"ca-pem\" has 64 KiB and 16 certificates at most; give only those of the server's "
                + "authority.")
    }
}
