// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import StoreDaemon

@Suite struct DeathsTests {
    private let minute: UInt64 = 60_000_000

    /// Returns the record after cycles that began at these minutes, and during each of which the process died.
    private func deaths(_ minutes: [UInt64], boot: String = "b") -> Deaths {
        var deaths = Deaths(boot: boot)
        for time in minutes {
            deaths.begin(time * minute)
            deaths = Deaths(deaths.text, boot: boot)
        }
        return deaths
    }

    @Test func `an account waits after two deaths within ten minutes, and longer after each that follows`() {
        #expect(deaths([]).wait(5) == nil && !deaths([]).isSuspect)
        #expect(deaths([1]).wait(minute) == nil && deaths([1]).isSuspect)
        #expect(deaths([1, 11]).wait(11 * minute) == 601)
        #expect(deaths([1, 11]).wait(21 * minute) == nil)
        #expect(deaths([1, 12]).wait(12 * minute) == nil)
        #expect(deaths([1, 12, 13]).wait(13 * minute) == 601)
        #expect(deaths([1, 2, 12]).wait(12 * minute) == 1201)
        #expect(deaths([1, 2, 12, 40]).wait(40 * minute) == 2401)
        #expect(deaths(Array(1...40)).wait(40 * minute) == 86_401)
    }

    @Test func `a process that ends between two cycles proves nothing, and keeps what was known`() {
        let twice = deaths([1, 2])
        #expect(Deaths(twice.text, boot: "b") == twice)
    }

    @Test func `what was before the machine was started proves nothing, and neither does what can't be read`() {
        var begun = deaths([1, 2])
        begun.begin(3 * minute)
        #expect(Deaths(begun.text, boot: "other") == Deaths(boot: "other"))
        for text in ["", "b", "b 2 x 0", "b -1 0 0", "b 99999 1 1", "b 1 2 3 4", "\u{0}"] {
            #expect(Deaths(text, boot: "b") == Deaths(boot: "b"), "\(text)")
        }
        #expect(Deaths("b 1000 18446744073709551615 18446744073709551615", boot: "b").wait(0) == 86_401)
    }
}
