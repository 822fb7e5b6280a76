// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import PropertyList
internal import StoreBus

extension UbiquitousStore {
    /// A change that this process didn't make, or a refused write.
    public struct Change: Sendable {
        /// Why the keys changed.
        public let reason: Reason
        /// The keys, sorted by their UTF-8.
        public let keys: [String]
        /// The identifier of the device that the change came from, if it is known and a single one.
        public let originDevice: String?
        /// Why a write of this process was refused and reverted; only with ``Reason/quotaViolation`` or
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

        /// Returns the value before the change, as this process saw it; `nil` if there was none, or the key isn't one
        /// of ``keys``.
        ///
        /// - Throws: ``UbiquitousStoreError``: `typeMismatch` if it isn't of the key's type.
        public func oldValue<Value>(for key: Key<Value>) throws -> Value? {
            try values[Text(key.name)]?.old.map { try key.decode($0) }
        }

        /// Returns the value after the change; `nil` if there is none, or the key isn't one of ``keys``.
        ///
        /// - Throws: ``UbiquitousStoreError``: `typeMismatch` if it isn't of the key's type.
        public func newValue<Value>(for key: Key<Value>) throws -> Value? {
            try values[Text(key.name)]?.new.map { try key.decode($0) }
        }
    }
}

extension UbiquitousStore.Change {
    /// The reason for a change. Later versions may add more.
    public struct Reason: RawRepresentable, Sendable, Hashable {
        /// The reason's number in the D-Bus interface. The first four are Apple's; ``invalidWrite`` is the library's
        /// own.
        public let rawValue: UInt32

        /// Makes a reason from its number.
        public init(rawValue: UInt32) { self.rawValue = rawValue }

        /// Changes of other devices, or changes made while the service wasn't running.
        public static let server = Reason(rawValue: ChangeReason.server)
        /// The first download of the account is complete.
        public static let initialSync = Reason(rawValue: ChangeReason.initialSync)
        /// A write was refused, or the writes of several devices together exceed a limit.
        public static let quotaViolation = Reason(rawValue: ChangeReason.quotaViolation)
        /// The user signed in to another account.
        public static let account = Reason(rawValue: ChangeReason.account)
        /// No store can hold what this process wrote: its key or value breaks a rule. Nothing changed.
        public static let invalidWrite = Reason(rawValue: ChangeReason.invalidWrite)
        /// Another process of this device wrote.
        public static let otherProcess = Reason(rawValue: ChangeReason.local)
    }
}

extension UbiquitousStore {
    /// An earlier value of a key, from ``UbiquitousStore/history(of:)``.
    public struct FormerValue<Value: Codable> {
        /// The value.
        public let value: Value
        /// When it was replaced or removed, by this device's clock.
        public let date: Date
        /// The identifier of the device that wrote it, if known.
        public let originDevice: String?
        /// Why it was replaced: `replaced` or `removed` on this device, `initial-sync` (the account's value won at the
        /// first download), `account` (the user switched accounts) or `merge` (another device's write won).
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

extension UbiquitousStore.FormerValue: Sendable where Value: Sendable {}
