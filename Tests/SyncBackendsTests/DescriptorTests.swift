// SPDX-License-Identifier: Apache-2.0

import BackendSupport
import PlaceAddress
import SyncBackends
import Testing

struct DescriptorTests {
    @Test func `each kind of remote has a backend, which is found by its schemes`() throws {
        #expect(BackendDescriptor.all.map(\.kind) == PlaceKind.all)
        for kind in PlaceKind.all {
            #expect(PlaceKind.find(kind.example) == kind)
            for scheme in kind.schemes { #expect(try BackendDescriptor.find(scheme).kind == kind) }
        }
    }
}
