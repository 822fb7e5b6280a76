// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import StoreDaemon

private let prefix = "/org/example/UbiquitousStore/v1"

struct PathTargetTests {
    @Test func `the caller's own and a number are users`() {
        #expect(PathTarget(prefix + "/self")?.uid == nil && PathTarget(prefix + "/self") != nil)
        #expect(PathTarget(prefix + "/u0")?.uid == 0)
        #expect(PathTarget(prefix + "/u4294967294")?.uid == UInt32.max - 1)
        #expect(PathTarget(prefix + "/u1000")?.identifier == nil)
    }

    @Test func `the second part is an identifier`() {
        let target = PathTarget(prefix + "/u1000/org_2eexample_2eNotes")
        #expect(target?.uid == 1000 && target?.identifier == "org.example.Notes")
        #expect(PathTarget(prefix + "/self/a")?.identifier == "a")
    }

    @Test(
        arguments: [
            "", "/u", "/u01", "/u+1", "/u-1", "/u4294967295", "/u4294967296", "/U1", "/1", "/me", "/Self", "/self/",
            "/u1/", "/u1/_",
            "/u1/a/b", "/u1/_61", "/u1/org_2Eexample", "/u1//a", "/u1/_2", "/u1/_zz", "/u1/a-b", "/u1/_00", "/u1/_ff",
            "/u٣",
        ])
    func `a path that nobody makes is no name of anything`(rest: String) {
        #expect(PathTarget(prefix + rest) == nil)
    }

    @Test func `a path elsewhere is none`() {
        #expect(PathTarget("/org/example/UbiquitousStore/v2/u1/a") == nil)
        #expect(PathTarget("/org/example/UbiquitousStore/v1x/u1/a") == nil)
        #expect(PathTarget("/") == nil)
    }
}
