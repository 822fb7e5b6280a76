// SPDX-License-Identifier: Apache-2.0

// The format of a file of managed settings: an XML or binary property list.
//
//     Forced, Recommended   domain → key → value
//     Locked, Ubiquitous    domain → keys, and prefixes that end in *
//     Users, Groups         names: the file applies only to these; without either key, to all users
//
// Apple's configuration profiles with payloads of the type com.apple.ManagedClient.preferences are read too: their
// Forced values as forced, their Set-Once values as recommended.

package import AppManifest
internal import PlainText
package import PropertyList
internal import PropertyListFiles

/// One file of managed settings.
package struct ManagedFile: Equatable, Sendable {
    /// Values that override all others, by domain.
    package private(set) var forced: [Text: [Text: Value]] = [:]
    /// Values that override only registered ones, by domain.
    package private(set) var recommended: [Text: [Text: Value]] = [:]
    /// Keys that only the administrator can set, by domain.
    package private(set) var locked: [Text: [Text]] = [:]
    /// Keys that are kept in the app's synced store, by domain.
    package private(set) var ubiquitous: [Text: [Text]] = [:]
    /// The names of the users to whom the file applies; if this and ``groups`` are `nil`, it applies to all.
    package private(set) var users: [String]?
    /// The names of the groups to whose members the file applies; `nil` if it names none.
    package private(set) var groups: [String]?
    /// The parts of Apple's profiles that are not read, such as `Often`, each with its keys from the outside in.
    package private(set) var ignoredParts: Set<String> = []

    /// The size in bytes above which a file is refused.
    package static let maximumSize = 1 << 20

    /// The domain that every program searches.
    package static let globalDomain: Text = "NSGlobalDomain"

    /// Reads an XML or binary property list.
    ///
    /// - Throws: a refusal that names the key and the reason, or the line if the file is no property list.
    package init(propertyList bytes: [UInt8]) throws(Manifest.Refusal) {
        let root = try Manifest.dictionary(ofPropertyList: bytes)
        if case .array(let payloads)? = root["PayloadContent"] {
            try readProfile(payloads)
        } else {
            for (name, value) in root { try read(name, value) }
        }
    }

    private mutating func read(_ name: Text, _ value: Value) throws(Manifest.Refusal) {
        switch name {
        case "Forced": forced = try Self.settings(name, value)
        case "Recommended": recommended = try Self.settings(name, value)
        case "Locked": locked = try Self.patterns(name, value)
        case "Ubiquitous": ubiquitous = try Self.patterns(name, value)
        case "Users": users = try Self.strings([name], value).map(\.string)
        case "Groups": groups = try Self.strings([name], value).map(\.string)
        default:
            throw Self.refusal(
                [name], "this key is not known; use Forced, Recommended, Locked, Ubiquitous, Users and Groups")
        }
    }

    /// Reads domain → key → value.
    private static func settings(_ name: Text, _ value: Value) throws(Manifest.Refusal) -> [Text: [Text: Value]] {
        var domains: [Text: [Text: Value]] = [:]
        for (domain, value) in try dictionary([name], value) {
            try check(domain: domain, [name])
            let settings = try dictionary([name, domain], value)
            for (key, value) in settings { try check([name, domain, key], key, value) }
            domains[domain] = settings
        }
        return domains
    }

    /// Reads domain → keys.
    private static func patterns(_ name: Text, _ value: Value) throws(Manifest.Refusal) -> [Text: [Text]] {
        var domains: [Text: [Text]] = [:]
        for (domain, value) in try dictionary([name], value) {
            try check(domain: domain, [name])
            domains[domain] = try strings([name, domain], value)
        }
        return domains
    }

    // MARK: Apple's profiles

    private mutating func readProfile(_ payloads: [Value]) throws(Manifest.Refusal) {
        for payload in payloads {
            guard case .dictionary(let payload) = payload,
                payload["PayloadType"] == .string("com.apple.ManagedClient.preferences")
            else { continue }
            let place: [Text] = ["PayloadContent"]
            for (name, value) in try Self.dictionary(place, payload["PayloadContent"] ?? .dictionary([:])) {
                let domain = name == ".GlobalPreferences" ? Self.globalDomain : name
                try Self.check(domain: domain, place)
                let parts = try Self.dictionary(place + [name], value)
                for part in parts.keys where part != "Forced" && part != "Set-Once" {
                    ignoredParts.insert(Self.path(place + [name, part]))
                }
                try Self.add(parts["Forced"], to: &forced[domain, default: [:]], place + [name, "Forced"])
                try Self.add(parts["Set-Once"], to: &recommended[domain, default: [:]], place + [name, "Set-Once"])
            }
        }
    }

    private static func add(
        _ value: Value?, to settings: inout [Text: Value], _ place: [Text]
    ) throws(Manifest.Refusal) {
        guard let value else { return }
        guard case .array(let parts) = value else { throw refusal(place, "it has to be an array") }
        for part in parts {
            let entry = try dictionary(place, part)["mcx_preference_settings"] ?? .dictionary([:])
            for (key, value) in try dictionary(place + ["mcx_preference_settings"], entry) {
                try check(place + [key], key, value)
                settings[key] = value
            }
        }
    }

    // MARK: Rules

    private static func check(domain: Text, _ place: [Text]) throws(Manifest.Refusal) {
        if let problem = DomainName.problem(domain.string) { throw refusal(place + [domain], problem) }
    }

    private static func check(_ place: [Text], _ key: Text, _ value: Value) throws(Manifest.Refusal) {
        do {
            _ = try Key(key.string, limit: Limits.domain.keyLength)
            try value.validate(.domain)
        } catch {
            throw refusal(place, "\(error)".clause)
        }
    }

    private static func dictionary(_ place: [Text], _ value: Value) throws(Manifest.Refusal) -> [Text: Value] {
        guard case .dictionary(let values) = value else { throw refusal(place, "it has to be a dictionary") }
        return values
    }

    private static func strings(_ place: [Text], _ value: Value) throws(Manifest.Refusal) -> [Text] {
        let problem = refusal(place, "it has to be an array of strings")
        guard case .array(let values) = value else { throw problem }
        return try values.map { value throws(Manifest.Refusal) in
            guard case .string(let text) = value else { throw problem }
            guard text.fitsMessages else {
                throw refusal(place, "a string has a character that no message can carry")
            }
            return text
        }
    }

    private static func refusal(_ place: [Text]?, _ reason: String) -> Manifest.Refusal {
        Manifest.Refusal(key: place.map(path), reason: reason)
    }

    private static func path(_ place: [Text]) -> String { place.map(\.string).joined(separator: " → ") }
}
