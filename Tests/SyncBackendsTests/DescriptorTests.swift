// SPDX-License-Identifier: Apache-2.0

import BackendSupport
import RemoteAddress
import SyncBackends
import Testing

struct DescriptorTests {
    @Test func `each kind of remote has a backend, which is found by its schemes`() throws {
        #expect(BackendDescriptor.all.map(\.kind) == BackendKind.all)
        for kind in BackendKind.all {
            #expect(BackendKind.find(kind.example) == kind)
            for scheme in kind.schemes { #expect(try BackendDescriptor.find(scheme).kind == kind) }
        }
    }
}
