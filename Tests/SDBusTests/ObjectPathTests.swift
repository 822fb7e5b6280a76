// SPDX-License-Identifier: Apache-2.0

import SDBus
import Testing

@Suite
struct ObjectPathTests {
    @Test(arguments: ["", "a", "_", "org.example.Notes", "ä", "7", "a/b", "日本"])
    func `a label is the same after encoding and decoding`(label: String) throws {
        let path = try ObjectPath.encode(prefix: "/org/example", label: label)
        #expect(ObjectPath.isValid(path))
        #expect(ObjectPath.decode(path, prefix: "/org/example") == label)
    }

    @Test func `encoding is libsystemd's`() throws {
        #expect(try ObjectPath.encode(prefix: "/p", label: "T.org-a") == "/p/T_2eorg_2da")
        #expect(try ObjectPath.encode(prefix: "/p", label: "") == "/p/_")
    }

    @Test(arguments: ["/p/_61", "/p/a_2E", "/p", "/p/a/b", "/q/a", "/p/_00", "/p/_ff", "/p/a_0", "/pa", "p", ""])
    func `a path that no label makes has none`(path: String) {
        #expect(ObjectPath.decode(path, prefix: "/p") == nil)
    }

    @Test func `what can't be encoded is an error`() {
        #expect(throws: BusError.self) { try ObjectPath.encode(prefix: "p", label: "a") }
        #expect(throws: BusError.self) { try ObjectPath.encode(prefix: "/p", label: "a\0b") }
    }
}
