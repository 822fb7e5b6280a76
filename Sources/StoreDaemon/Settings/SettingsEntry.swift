// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import PropertyList
internal import RemoteAddress
internal import Replication
internal import SyncEngine

/// A key that a section of the settings may have.
struct SettingsEntry: Sendable {
    let section: String
    let key: String
    /// The allowed values, for a sentence that ends with "is".
    let allowed: String
    var isList = false
    /// Whether the setting forbids something, so that a mistake in it must not allow it.
    var isRestriction = false
    /// Sets the value, and returns whether it is allowed.
    let set: @Sendable (inout Settings, Substring) -> Bool

    static var sections: String {
        ["Service", "Sync", "Store", "Domain", "User"].map { "[\($0)]" }.joined(separator: ", ")
    }

    static let all: [SettingsEntry] = service + sync + store + domain + user

    private static let service: [SettingsEntry] = [
        SettingsEntry(
            section: "Service", key: "LogLevel",
            allowed: "one of " + Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")
        ) { settings, value in
            guard let level = Logger.Level(rawValue: String(value)) else { return false }
            settings.logLevel = level
            return true
        },
        SettingsEntry(section: "Service", key: "DeviceName", allowed: "a name of 1 to 255 bytes") { settings, value in
            guard value.utf8.count <= 255 else { return false }
            settings.deviceName = value.isEmpty ? nil : String(value)
            return true
        },
        SettingsEntry.duration("Service", "IdleExit", 0...86_400) { $0.ask(forIdleExit: $1) },
    ]

    private static let sync: [SettingsEntry] = [
        SettingsEntry(section: "Sync", key: "FolderRoot", allowed: "an absolute path without \"..\"", isList: true) {
            settings, value in
            // An empty value clears the list of earlier files.
            if value.isEmpty { settings.folderRoots = [] }
            guard value.utf8.first == UInt8(ascii: "/") else { return value.isEmpty }
            // Split by bytes as the kernel does. Swift doesn't see a slash before a combining character.
            let names = value.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }.filter {
                $0 != "."
            }
            if names.contains("..") { return false }
            settings.folderRoots.append("/" + names.joined(separator: "/"))
            return true
        },
        SettingsEntry(
            section: "Sync", key: "Backends",
            allowed: "a list of " + BackendKind.schemes.joined(separator: ", ") + ", with spaces between them",
            isRestriction: true
        ) { settings, value in
            let schemes = value.split(whereSeparator: \.isWhitespace).map(String.init)
            guard schemes.allSatisfy(BackendKind.schemes.contains) else { return false }
            settings.backends = Set(schemes)
            return true
        },
        SettingsEntry(section: "Sync", key: "RequireEncryption", allowed: "yes or no", isRestriction: true) {
            settings, value in
            guard ["yes", "no"].contains(value) else { return false }
            settings.requiresEncryption = value == "yes"
            return true
        },
        SettingsEntry(
            section: "Sync", key: "DefaultAccount",
            allowed: "an address such as webdavs://HOST/PATH/%u, with %u for the user's name or %U for the number"
        ) { settings, value in
            guard value.isEmpty || DefaultAccount.isAddress(value) else { return false }
            // Without an account, its certificates mean nothing either.
            settings.changeDefaultAccount {
                if value.isEmpty { $0.authorityFile = nil }
                $0.address = String(value)
            }
            return true
        },
        SettingsEntry(section: "Sync", key: "DefaultAuthority", allowed: "an absolute path") { settings, value in
            guard value.isEmpty || value.first == "/" else { return false }
            settings.changeDefaultAccount { $0.authorityFile = value.isEmpty ? nil : String(value) }
            return true
        },
        SettingsEntry.duration("Sync", "Coalescing", 0...3600, withoutValue: { $0.pace.coalescing = nil }) {
            $0.pace.coalescing = $1
        },
        SettingsEntry.duration("Sync", "ShortestPoll", 1...86_400) { $0.pace.shortestPoll = $1 },
        SettingsEntry.duration("Sync", "LongestPoll", 1...86_400) { $0.pace.longestPoll = $1 },
        SettingsEntry.duration("Sync", "PresentPoll", 1...86_400) { $0.pace.presentPoll = $1 },
        SettingsEntry.duration("Sync", "AbsentPoll", 0...86_400) { $0.pace.absentPoll = $1 },
        SettingsEntry.duration("Sync", "SparingPace", 0...86_400) { $0.pace.sparingPace = $1 },
    ]

    private static let store: [SettingsEntry] = [
        SettingsEntry.count("Store", "Keys", 1...4096) { $0.limits.keys = $1 },
        SettingsEntry.size("Store", "TotalBytes", 4 << 10, 4 << 20) { $0.limits.totalBytes = $1 },
    ]

    private static let domain: [SettingsEntry] = [
        SettingsEntry.count("Domain", "Keys", 1...65_536) { $0.layerLimits.keys = $1 },
        SettingsEntry.size("Domain", "TotalBytes", 4 << 10, 8 << 20) { $0.layerLimits.totalBytes = $1 },
    ]

    private static let user: [SettingsEntry] = [
        SettingsEntry.count("User", "Stores", 1...65_536) { $0.bounds.stores = $1 },
        SettingsEntry.count("User", "Domains", 1...65_536) { $0.bounds.domains = $1 },
        SettingsEntry.size("User", "DatabaseBytes", 1 << 20, 64 << 30) { $0.bounds.databaseBytes = $1 },
        SettingsEntry.count("User", "Subscriptions", 1...65_536) { $0.bounds.subscriptions = $1 },
        SettingsEntry.count("User", "SubscriptionsPerConnection", 1...4096) {
            $0.bounds.subscriptionsPerConnection = $1
        },
        SettingsEntry.count("User", "RegisteredManifests", 0...RegisteredManifests.most) {
            $0.bounds.registeredManifests = $1
        },
        SettingsEntry.count("User", "WaitingCalls", 1...4096) { $0.bounds.waitingCalls = $1 },
    ]
}

// MARK: Kinds of values

extension SettingsEntry {
    private static func count(
        _ section: String, _ key: String, _ range: ClosedRange<Int>,
        _ set: @escaping @Sendable (inout Settings, Int) -> Void
    ) -> SettingsEntry {
        SettingsEntry(section: section, key: key, allowed: "a number from \(range.lowerBound) to \(range.upperBound)") {
            settings, value in
            guard let number = Int(digits: value), range.contains(number) else { return false }
            set(&settings, number)
            return true
        }
    }

    private static func size(
        _ section: String, _ key: String, _ least: Int, _ most: Int,
        _ set: @escaping @Sendable (inout Settings, Int) -> Void
    ) -> SettingsEntry {
        let allowed = "a number of bytes from \(least) to \(most), or one with K, M or G after it"
        return SettingsEntry(section: section, key: key, allowed: allowed) { settings, value in
            guard let number = scaled(value, ["K": 1 << 10, "M": 1 << 20, "G": 1 << 30], range: least...most) else {
                return false
            }
            set(&settings, number)
            return true
        }
    }

    private static func duration(
        _ section: String, _ key: String, _ seconds: ClosedRange<Int>,
        withoutValue unset: (@Sendable (inout Settings) -> Void)? = nil,
        _ set: @escaping @Sendable (inout Settings, Duration) -> Void
    ) -> SettingsEntry {
        let allowed = "a time of \(seconds.lowerBound) to \(seconds.upperBound) seconds, such as 90, 90s, 5min or 1h"
        return SettingsEntry(section: section, key: key, allowed: allowed) { settings, value in
            if value.isEmpty, let unset {
                unset(&settings)
                return true
            }
            guard let number = scaled(value, ["s": 1, "min": 60, "h": 3600], range: seconds) else { return false }
            set(&settings, .seconds(number))
            return true
        }
    }

    /// Parses a number, which may have a unit.
    private static func scaled(_ value: Substring, _ units: [String: Int], range: ClosedRange<Int>) -> Int? {
        let number = value.prefix { $0.isNumber }
        let unit = String(value[number.endIndex...].drop { $0 == " " })
        guard let count = Int(digits: number), let factor = unit.isEmpty ? 1 : units[unit] else { return nil }
        let product = count.multipliedReportingOverflow(by: factor)
        return !product.overflow && range.contains(product.partialValue) ? product.partialValue : nil
    }
}

extension Int {
    /// Parses a number that consists of digits only, without a sign.
    fileprivate init?(digits text: Substring) {
        guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        self.init(text)
    }
}
