// SPDX-License-Identifier: Apache-2.0

package import PropertyList
internal import PropertyListFiles

/// An app's manifest: a property list in the form of Apple's entitlements.
package struct Manifest: Equatable, Sendable {
    /// The store's identifier, expanded; `nil` if the app has no store, only settings that stay on the device.
    package let identifier: String?
    package let teamIdentifier: String?
    /// The app id: reverse DNS, the name of the app's .desktop file.
    package let applicationIdentifier: String
    /// The defaults domains that the app may use in a sandbox besides its own.
    package let groups: [String]
    /// The keys that never leave the device, and prefixes of such keys, which end in `*`.
    package let localKeys: [String]
    /// The keys of the app's defaults that are in its synced store, and prefixes of such keys, which end in `*`.
    package let ubiquitousDefaults: [String]

    /// The app's programs, as absolute paths, which open its store without naming it. Only the client library uses
    /// them, because the service can't tell which program is calling.
    package let executables: [String]

    /// Why a manifest is refused.
    package struct Refusal: Error, Equatable {
        /// The key that is wrong; `nil` if the whole file is.
        package let key: String?
        package let reason: String

        /// Makes a refusal from its parts.
        package init(key: String?, reason: String) {
            self.key = key
            self.reason = reason
        }
    }

    /// The keys that manifests may have. Others are Apple's, and are ignored here.
    package static let keys = [
        Name.identifier, Name.team, Name.application, Name.groups, Name.executables, Name.localKeys,
        Name.ubiquitousDefaults,
    ]
    /// The prefix of the service's own keys.
    package static let ownPrefix = "org.example.UbiquitousStore."

    private enum Name {
        static let identifier = "com.apple.developer.ubiquity-kvstore-identifier"
        static let team = "com.apple.developer.team-identifier"
        static let application = "application-identifier"
        static let groups = "com.apple.security.application-groups"
        static let executables = "org.example.UbiquitousStore.executables"
        static let localKeys = "org.example.UbiquitousStore.local-keys"
        static let ubiquitousDefaults = "org.example.UbiquitousStore.ubiquitous-defaults"
    }

    /// The maximum size of a manifest, in bytes.
    package static let maximumSize = 64 << 10

    /// Reads an XML or binary property list.
    package init(propertyList bytes: [UInt8]) throws(Refusal) {
        try self.init(try Self.dictionary(ofPropertyList: bytes))
    }

    /// Makes a manifest from what ``dictionary(ofPropertyList:)`` has read.
    package init(_ dictionary: [Text: Value]) throws(Refusal) {
        guard let application = try Self.string(dictionary, Name.application), Self.isName(application) else {
            throw Refusal(key: Name.application, reason: "it has to be the app id, such as org.example.Notes")
        }
        applicationIdentifier = application
        teamIdentifier = try Self.string(dictionary, Name.team)
        guard teamIdentifier.map(Self.isName) ?? true else {
            throw Refusal(key: Name.team, reason: "it has to be \(Self.nameRule)")
        }
        identifier = try Self.identifier(dictionary, team: teamIdentifier, application: application)
        let team = teamIdentifier
        groups = try Self.strings(dictionary, Name.groups).map { Self.expand($0, team: team, application: application) }
        localKeys = try Self.strings(dictionary, Name.localKeys)
        ubiquitousDefaults = try Self.strings(dictionary, Name.ubiquitousDefaults)
        executables = try Self.strings(dictionary, Name.executables)
        guard executables.allSatisfy({ $0.utf8.first == UInt8(ascii: "/") }) else {
            throw Refusal(key: Name.executables, reason: "each has to be an absolute path")
        }
    }

    /// The manifest as a property list, with its keys and nothing else. It takes less time to read than another one may.
    package var propertyList: [UInt8] {
        get throws {
            func array(_ strings: [String]) -> Value { .array(strings.map { .string(Text($0)) }) }
            var dictionary: [Text: Value] = [
                Text(Name.application): .string(Text(applicationIdentifier)), Text(Name.groups): array(groups),
                Text(Name.localKeys): array(localKeys), Text(Name.ubiquitousDefaults): array(ubiquitousDefaults),
                Text(Name.executables): array(executables),
            ]
            dictionary[Text(Name.identifier)] = identifier.map { .string(Text($0)) }
            dictionary[Text(Name.team)] = teamIdentifier.map { .string(Text($0)) }
            return try FileFormat.binary.write(.dictionary(dictionary))
        }
    }

    /// Reads the dictionary in an XML or binary property list.
    package static func dictionary(ofPropertyList bytes: [UInt8]) throws(Refusal) -> [Text: Value] {
        let format = FileFormat(of: bytes)
        guard format != .json else { throw Refusal(key: nil, reason: "it is not an XML or binary property list") }
        let value: Value
        do { value = try format.read(bytes) } catch {
            throw Refusal(key: nil, reason: "it is not an XML or binary property list: \(error)")
        }
        guard case .dictionary(let dictionary) = value else {
            throw Refusal(key: nil, reason: "it is not a dictionary")
        }
        return dictionary
    }

    /// The most bytes of a name before its variables are replaced.
    private static let longestDeclared = 512

    /// Returns a name with the values of Xcode's variables. A name that is too long stays as it is, and is no valid one.
    private static func expand(_ declared: String, team: String?, application: String) -> String {
        // Each name that is inserted may have 255 bytes.
        if declared.utf8.count > longestDeclared { return declared }
        return declared.replacing("$(TeamIdentifierPrefix)", with: team.map { $0 + "." } ?? "")
            .replacing("$(CFBundleIdentifier)", with: application)
    }

    /// What a valid identifier is, as a part of a sentence.
    private static let nameRule = "1 to 255 of the characters A-Z a-z 0-9 . _ -, and neither \".\" nor \"..\""

    /// Whether a string is a valid identifier, after expansion.
    package static func isName(_ name: String) -> Bool {
        (1...255).contains(name.utf8.count) && name != "." && name != ".."
            && name.utf8.allSatisfy {
                switch $0 {
                case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
                    true
                default: false
                }
            }
    }

    private static func identifier(
        _ dictionary: [Text: Value], team: String?, application: String
    ) throws(Refusal) -> String? {
        guard let declared = try string(dictionary, Name.identifier) else { return nil }
        guard declared.utf8.count <= longestDeclared else {
            throw Refusal(key: Name.identifier, reason: "it has to be \(nameRule)")
        }
        let expanded = expand(declared, team: team, application: application)
        guard isName(expanded) else {
            throw Refusal(
                key: Name.identifier,
                reason: "\"\(expanded)\" has to be \(nameRule)")
        }
        return expanded
    }

    private static func string(_ dictionary: [Text: Value], _ key: String) throws(Refusal) -> String? {
        guard let value = dictionary[Text(key)] else { return nil }
        guard case .string(let text) = value else { throw Refusal(key: key, reason: "it has to be a string") }
        return text.string
    }

    /// The most strings in an array. They are compared with keys and paths in calls.
    private static let mostStrings = 256

    private static func strings(_ dictionary: [Text: Value], _ key: String) throws(Refusal) -> [String] {
        let refusal = Refusal(key: key, reason: "it has to be an array of strings")
        guard case .array(let values) = dictionary[Text(key)] ?? .array([]) else { throw refusal }
        guard values.count <= mostStrings else {
            throw Refusal(key: key, reason: "it has \(values.count) strings; the most are \(mostStrings)")
        }
        return try values.map { value throws(Refusal) in
            guard case .string(let text) = value else { throw refusal }
            guard text.fitsMessages else {
                throw Refusal(key: key, reason: "a string has a character that no message can carry")
            }
            return text.string
        }
    }
}

extension Manifest {
    /// Whether manifests may declare one identifier: they are of one app or of one team.
    package static func mayShare(_ group: [Manifest]) -> Bool {
        let teams = Set(group.map(\.teamIdentifier))
        let applications = Set(group.map(\.applicationIdentifier))
        return applications.count == 1 || (teams.count == 1 && !teams.contains(nil))
    }
}

extension Manifest.Refusal: CustomStringConvertible {
    package var description: String { key.map { "\($0): \(reason)" } ?? reason }
}
