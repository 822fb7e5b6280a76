// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Files

struct BaseDirectoryTests {
    private func path(_ directory: BaseDirectory, _ environment: [String: String]) -> String? {
        directory.path { environment[$0] }
    }

    @Test func `the variable names the directory, or else the home directory does`() {
        #expect(path(.config, ["XDG_CONFIG_HOME": "/c", "HOME": "/h"]) == "/c")
        #expect(path(.config, ["XDG_STATE_HOME": "/s", "HOME": "/h"]) == "/h/.config")
        #expect(path(.data, ["HOME": "/h"]) == "/h/.local/share")
        #expect(path(.state, ["HOME": "/h"]) == "/h/.local/state")
    }

    @Test func `relative paths don't count`() {
        #expect(path(.data, ["XDG_DATA_HOME": "d", "HOME": "/h"]) == "/h/.local/share")
        #expect(path(.data, ["XDG_DATA_HOME": "", "HOME": "h"]) == nil)
        #expect(path(.data, [:]) == nil)
    }
}
