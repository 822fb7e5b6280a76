// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import PropertyList

extension UbiquitousStore {
    /// Something that changed otherwise than by this process, or that was refused.
    public struct Change: Sendable {
        /// Why.
        public let reason: Reason
        /// The keys, sorted by their UTF-8.
        public let keys: [String]
        /// The identifier of the device that the change came from, where it is known and one.
        public let originDevice: String?
        /// Why a write of this process was refused and taken back, with ``Reason/quotaViolation`` or
        /// ``Reason/invalidWrite``.
        public let error: UbiquitousStoreError?

        private let values: [Text: KeyChange]

        init(_ announcement: Announcement) {
            reason = Reason(rawValue: announcement.reason)
            keys = announcement.changes.map(\.key.string)
            originDevice = announcement.originDevice
            error = announcement.error
            values = Dictionary(announcement.changes.map { ($0.key, $0) }) { $1 }
        }

        /// What this process saw before; `nil` if there was no value, or the key isn't one of ``keys``.
        ///
        /// - Throws: ``UbiquitousStoreError``: `typeMismatch` if it isn't of the key's type.
        public func oldValue<Value>(for key: Key<Value>) throws -> Value? {
            try values[Text(key.name)]?.old.map { try key.decode($0) }
        }

        /// What this process sees now; `nil` if there is no value, or the key isn't one of ``keys``.
        ///
        /// - Throws: ``UbiquitousStoreError``: `typeMismatch` if it isn't of the key's type.
        public func newValue<Value>(for key: Key<Value>) throws -> Value? {
            try values[Text(key.name)]?.new.map { try key.decode($0) }
        }
    }
}

extension UbiquitousStore.Change {
    /// Why something changed. There may be more of them in later versions.
    public struct Reason: RawRepresentable, Sendable, Hashable {
        /// The number that it has on the bus, where the first four are Apple's; ``invalidWrite`` is never there.
        public let rawValue: UInt32

        /// A reason by its number.
        public init(rawValue: UInt32) { self.rawValue = rawValue }

        /// Changes of other devices arrived, or what changed while the service was away.
        public static let server = Reason(rawValue: 0)
        /// The first download of the account is complete.
        public static let initialSync = Reason(rawValue: 1)
        /// A write was refused, or what several devices wrote doesn't fit together.
        public static let quotaViolation = Reason(rawValue: 2)
        /// The person signed in to another account.
        public static let account = Reason(rawValue: 3)
        /// A write of this process is none that a store can hold: its key or its value breaks a rule. Nothing changed.
        public static let invalidWrite = Reason(rawValue: .max)
        /// Another process of this device wrote.
        public static let otherProcess = Reason(rawValue: 16)
    }
}

extension UbiquitousStore {
    /// An earlier value of a key.
    public struct FormerValue<Value: Codable & Sendable>: Sendable {
        /// The value.
        public let value: Value
        /// When it ceased to be the key's value.
        public let date: Date
        /// The identifier of the device that had written it, where it is known.
        public let originDevice: String?
        /// Why it ceased to be: `replaced`, `removed`, `initial-sync`, `account` or `merge`.
        public let why: String

        init?(_ former: HistoryEntry, _ key: Key<Value>) {
            guard let value = try? key.decode(former.value) else { return nil }
            self.value = value
            date = Date(timeIntervalSince1970: Double(former.time) / 1_000_000)
            originDevice = former.originDevice.isEmpty ? nil : former.originDevice
            why = former.why
        }
    }
}
