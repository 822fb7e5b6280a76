// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import ControlCommands

/// Text that a terminal would not show.
@Suite struct HiddenTextTests {
    @Test(arguments: ["a\tb", "a\u{1B}[31m", "a\u{200F}b", "a\u{FFFF}b"])
    func `what can't be shown is replaced, however long a line may be`(text: String) {
        let shown = Output.printableWord(text)
        #expect(shown.unicodeScalars.count == text.unicodeScalars.count && shown.contains("\u{FFFD}"))
        #expect(Output.printable("\(text)\n\(text)") == "\(shown)\n\(shown)")
    }
}
