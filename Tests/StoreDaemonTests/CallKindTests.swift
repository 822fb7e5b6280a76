// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import StoreDaemon

/// What calls cost by their names.
@Suite struct CallKindTests {
    @Test func `every method that has a cost of its own is one of the interfaces'`() throws {
        let file = URL(filePath: #filePath).appending(path: "../../../dbus/org.example.UbiquitousStore.xml")
        let text = try String(contentsOf: file.standardized, encoding: .utf8)
        let methods = Set(text.matches(of: /<method name="(\w+)"/).map { String($0.output.1) })
        #expect(methods.count > 30)
        #expect(CallKind.smallAnswers.subtracting(methods) == [])
        #expect(Set(CallKind.largeArguments.keys).subtracting(methods) == [])
    }
}
