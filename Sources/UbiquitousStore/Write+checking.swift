// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import PropertyList

extension Write {
    /// Makes a write after checking that a store can hold it.
    ///
    /// - Throws: ``UbiquitousStoreError`` that names the key or value it can't hold.
    init(checking changes: Changes, tickets: [Ticket] = []) throws {
        var size = 0
        for (key, value) in changes {
            do {
                _ = try Key(key.string)
                if let value { size += try value.validate() }
            } catch {
                throw UbiquitousStoreError(refusing: error)
            }
        }
        let now = Date().timeIntervalSince1970 * 1_000_000
        self.init(changes, size: size, tickets: tickets, time: UInt64(max(0, now)))
    }
}

extension UbiquitousStoreError {
    /// Makes an error from a broken rule for keys or values.
    package init(refusing error: any Error) {
        let code: Code =
            switch error {
            case KeyError.tooLong: .keyTooLong
            case is KeyError: .invalidKey
            case ValueError.tooDeep: .depthExceeded
            case ValueError.tooLarge: .quotaExceeded
            default: .invalidValue
            }
        self.init(code, "\(error)", cause: error)
    }
}
