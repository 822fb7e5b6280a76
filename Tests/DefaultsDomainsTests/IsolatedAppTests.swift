// SPDX-License-Identifier: Apache-2.0

import DefaultsDomains
import IsolatedApp
import PropertyList
import Testing
import UbiquitousStoreTesting

@MainActor
@Suite(.serialized, .timeLimit(.minutes(30)))
struct IsolatedAppTests {
    @Test func `an app whose declarations are the main actor's by default stores and observes its own types`()
        async throws
    {
        try await DefaultsDesk.with { (desk: DefaultsDesk) async throws in
            let defaults = desk.settings()
            defaults.set(12, forKey: "fontSize")
            let app = Editor(defaults)
            #expect(try await app.write() == ["dark", "1", "dark", "dark", "dark", "Ada L", "100"])
            try await desk.other().set("fontSize", .integer(14))
            try await eventually("the size is observed") { app.sizes == [12, 14] }
            app.end()
            defaults.set(16, forKey: "fontSize")
            defaults.set(1, forKey: "something else")
            await DefaultsDesk.drain()
            await Task.yield()
            #expect(app.sizes == [12, 14])
        }
    }
}
