// SPDX-License-Identifier: Apache-2.0
// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The names are Apple's.

internal import StoreBus

/// The reason of a change, an `Int`, in the notification's user info. Absent if a write was ignored, because Apple
/// defines no reason for that.
public let NSUbiquitousKeyValueStoreChangeReasonKey = "NSUbiquitousKeyValueStoreChangeReasonKey"
/// The keys that changed, a `[String]`, in the notification's user info.
public let NSUbiquitousKeyValueStoreChangedKeysKey = "NSUbiquitousKeyValueStoreChangedKeysKey"
/// Why a write was refused, an ``UbiquitousStoreError``, in the notification's user info; Apple has no such key.
public let NSUbiquitousKeyValueStoreErrorKey = "NSUbiquitousKeyValueStoreErrorKey"

/// Values changed on another device, or in another process of this one.
public var NSUbiquitousKeyValueStoreServerChange: Int { Int(ChangeReason.server) }
/// The first download of the account is complete, and its values are here.
public var NSUbiquitousKeyValueStoreInitialSyncChange: Int { Int(ChangeReason.initialSync) }
/// A write was refused and reverted, or the writes of several devices together exceed a limit.
public var NSUbiquitousKeyValueStoreQuotaViolationChange: Int { Int(ChangeReason.quotaViolation) }
/// The user signed in to another account, whose values are now visible.
public var NSUbiquitousKeyValueStoreAccountChange: Int { Int(ChangeReason.account) }
