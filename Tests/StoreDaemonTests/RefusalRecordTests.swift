// SPDX-License-Identifier: Apache-2.0

import Foundation
import Replication
import Testing

@testable import StoreDaemon

@Suite struct RefusalRecordTests {
    @Test func `refused credentials are left alone for an hour, however often the service starts`() throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "refusals-\(UUID())").path
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        var record = RefusalRecord(in: directory)
        #expect(record.error(10_000) == nil)
        record.note(RemoteError(.unavailable, "away"), 10_000)
        #expect(RefusalRecord(in: directory).error(10_000) == nil)
        record.note(RemoteError(.unauthorized, "no"), 10_000)
        record = RefusalRecord(in: directory)
        #expect(record.error(10_600)?.code == .unauthorized && record.error(10_600)?.retryAfter == 3000)
        // A clock that was set back proves nothing.
        #expect(record.error(13_600) == nil && record.error(9_000) == nil)
        record.note(RemoteError(.unavailable, "away"), 10_700)
        #expect(RefusalRecord(in: directory).error(10_800) != nil)
        record.note(nil, 10_900)
        #expect(RefusalRecord(in: directory).error(10_901) == nil && record.error(10_901) == nil)
    }
}
