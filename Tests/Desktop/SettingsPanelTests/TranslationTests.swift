// SPDX-License-Identifier: Apache-2.0

import DesktopTesting
import Testing

@Suite(.enabled(if: Translations.areAvailable, "gettext is not installed"))
struct TranslationTests {
    @Test func `every text of the windows and the notifications is translated`() async throws {
        try await Translations.run("check")
    }
}
