// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import StoreDaemon

struct IdleDecisionTests {
    @Test func `an idle service that nothing starts again stays, unless somebody asked for it to end`() {
        #expect(IdleDecision(isActivatable: false, isAskedFor: false) == .stay)
        #expect(IdleDecision(isActivatable: false, isAskedFor: true) == .end)
        #expect(IdleDecision(isActivatable: true, isAskedFor: false) == .endUntilCalled)
        #expect(IdleDecision(isActivatable: true, isAskedFor: true) == .endUntilCalled)
    }

    @Test func `an idle service says what it does, and how to have it do otherwise`() {
        #expect(IdleDecision.end.sentence(after: .seconds(60)).contains("--idle-exit 0"))
        #expect(IdleDecision.stay.sentence(after: .seconds(300)).contains("--idle-exit 300"))
    }

    @Test func `settings and options that say when to end ask for it`() throws {
        #expect(!Settings().isIdleExitAskedFor)
        #expect(try Settings(file: "[Service]\nIdleExit=5min\n").isIdleExitAskedFor)
    }
}
