// SPDX-License-Identifier: Apache-2.0

import PrefsColors
import Testing
import UbiquitousStore

@testable import prefs_in_cloud

struct PreferenceTests {
    private func opened(_ stored: Int?, local: BackgroundColor = .white) -> Preference {
        var preference = Preference(localColor: local)
        _ = preference.open(stored: stored)
        return preference
    }

    @Test func `before the store is open the local copy is shown`() {
        #expect(Preference(localColor: .red).color == .red)
    }

    @Test func `an open store's color wins over the local copy, and is kept`() {
        let preference = opened(2, local: .red)
        #expect(preference.color == .green)
        #expect(preference.localColor == .green)
    }

    @Test func `a store without a color leaves the local copy's`() {
        #expect(opened(nil, local: .yellow).color == .yellow)
    }

    @Test(arguments: [4, -1, Int.max]) func `a number that is no color changes nothing`(number: Int) {
        var preference = opened(1)
        preference.note(.server, stored: number)
        #expect(preference.color == .red)
    }

    @Test(arguments: [
        (UbiquitousStore.Change.Reason.server, Preference.LastChange.otherDevice), (.otherProcess, .otherProgram),
        (.initialSync, .firstDownload), (.account, .otherAccount), (.quotaViolation, .refused),
    ])
    func `the row says why the color changed`(reason: UbiquitousStore.Change.Reason, row: Preference.LastChange) {
        var preference = opened(1)
        preference.note(reason, stored: 3)
        #expect(preference.lastChange == row)
        #expect(preference.color == .yellow)
    }

    @Test func `an account without a color shows the local copy's`() {
        var preference = opened(1)
        preference.note(.account, stored: nil)
        #expect(preference.color == .red)
    }

    @Test func `a refused choice goes back to the store's color`() {
        var preference = opened(1)
        preference.choose(.green, isOpen: true)
        preference.note(.quotaViolation, stored: 1)
        #expect(preference.color == .red)
        #expect(preference.lastChange == .refused)
    }

    @Test func `choices that a store without a color refuses go back to the color before them`() {
        var preference = opened(nil, local: .yellow)
        preference.choose(.green, isOpen: true)
        preference.choose(.red, isOpen: true)
        preference.note(.quotaViolation, stored: nil)
        #expect(preference.color == .yellow && preference.localColor == .yellow)
        #expect(preference.lastChange == .refused)
    }

    @Test func `a refused choice does not go back beyond an earlier one that another device has removed`() {
        var preference = opened(nil, local: .yellow)
        preference.choose(.green, isOpen: true)
        preference.note(.server, stored: nil)
        preference.choose(.red, isOpen: true)
        preference.note(.quotaViolation, stored: nil)
        #expect(preference.color == .green)
    }

    @Test func `without a service a choice is shown, kept here, and said not to be kept`() {
        var preference = Preference(localColor: .white)
        preference.choose(.yellow, isOpen: false)
        #expect(preference.color == .yellow)
        #expect(preference.localColor == .yellow)
        #expect(preference.lastChange == .notKept)
    }

    @Test func `a choice without a service is passed on to a store that has no color, also by the next program`() {
        var preference = Preference(localColor: .white)
        preference.choose(.yellow, isOpen: false)
        var next = Preference(localColor: preference.localColor, isPending: preference.isPending)
        #expect(preference.open(stored: nil) && preference.lastChange == .here && preference.color == .yellow)
        #expect(next.open(stored: nil) && next.lastChange == .here && next.color == .yellow)
        #expect(!preference.isPending && !next.open(stored: nil))
    }

    @Test func `a choice without a service does not replace a color that the store has`() {
        var preference = Preference(localColor: .white)
        preference.choose(.yellow, isOpen: false)
        #expect(!preference.open(stored: 1) && preference.color == .red && preference.lastChange == .none)
    }
}
