// SPDX-License-Identifier: Apache-2.0

package import PropertyList

/// The managed settings of one domain, for one user.
package struct ManagedDomain: Equatable, Sendable {
    /// Values that override all others.
    package var forced: [Text: Value] = [:]
    /// Keys whose values in the layers 2 to 7 are hidden.
    package var locked = KeyPatterns.none
    /// Values that override only registered ones.
    package var recommended: [Text: Value] = [:]
    /// Keys that are kept in the app's synced store; `nil` if the manifest decides.
    package var ubiquitous: KeyPatterns?
    /// The path of the file that each forced value and locked pattern comes from, or else the recommended value.
    package var sources: [Text: String] = [:]
    /// The paths of the files that recommended values come from, where they aren't those of ``sources``.
    package var recommendedSources: [Text: String] = [:]

    /// Makes settings in which nothing is managed.
    package init() {}

    /// Returns the keys, and the patterns of keys, that are managed in one way here and in another there.
    package func difference(from other: ManagedDomain) -> Set<Text> {
        var keys = Set(forced.keys).union(other.forced.keys).filter { forced[$0] != other.forced[$0] }
        keys.formUnion(
            Set(recommended.keys).union(other.recommended.keys).filter { recommended[$0] != other.recommended[$0] })
        keys.formUnion(Set(locked.patterns).symmetricDifference(other.locked.patterns))
        let (mine, others) = (ubiquitous?.patterns ?? [], other.ubiquitous?.patterns ?? [])
        let roaming = Set(mine).symmetricDifference(others)
        // With an empty list no key roams; without a list the manifest decides, and may name any key.
        if roaming.isEmpty && (ubiquitous == nil) != (other.ubiquitous == nil) { keys.insert("*") }
        return keys.union(roaming)
    }
}

/// A user by name and groups, as files of managed settings name users.
package struct ManagedUser: Hashable, Sendable {
    /// The user's name; `nil` if it is unknown.
    package let name: String?
    /// The names of the user's groups.
    package let groups: Set<String>

    /// Makes a user from name and groups.
    package init(name: String?, groups: Set<String> = []) {
        self.name = name
        self.groups = groups
    }
}

/// The files of managed settings that are in force, merged key by key: a later file wins.
package struct ManagedSettings: Equatable, Sendable {
    package let files: [(path: String, file: ManagedFile)]

    /// Makes settings from files in the order of their names.
    package init(_ files: [(path: String, file: ManagedFile)] = []) {
        self.files = files
    }

    package static func == (left: Self, right: Self) -> Bool {
        left.files.elementsEqual(right.files) { $0.path == $1.path && $0.file == $1.file }
    }

    /// Whether there are no files.
    package var isEmpty: Bool { files.isEmpty }

    /// The groups that files name, so that it matters who their members are.
    package var groupNames: Set<String> { Set(files.flatMap { $0.file.groups ?? [] }) }

    /// Returns the paths of the files for a user.
    package func paths(for user: ManagedUser) -> [String] { files.filter { $0.file.isFor(user) }.map(\.path) }

    /// Returns the domains that any file for a user names.
    package func domains(for user: ManagedUser) -> Set<Text> {
        var domains: Set<Text> = []
        for (_, file) in files where file.isFor(user) {
            domains.formUnion(file.forced.keys)
            domains.formUnion(file.recommended.keys)
            domains.formUnion(file.locked.keys)
            domains.formUnion(file.ubiquitous.keys)
        }
        return domains
    }

    /// Returns the managed settings of a domain, for a user.
    package func domain(_ domain: Text, for user: ManagedUser) -> ManagedDomain {
        var managed = ManagedDomain()
        for (_, file) in files where file.isFor(user) {
            managed.recommended.merge(file.recommended[domain] ?? [:]) { $1 }
            managed.forced.merge(file.forced[domain] ?? [:]) { $1 }
            managed.locked.add(file.locked[domain] ?? [])
            if let keys = file.ubiquitous[domain] { managed.ubiquitous = KeyPatterns(keys) }
        }
        managed.note(from: files.filter { $1.isFor(user) }, domain)
        return managed
    }
}

extension ManagedDomain {
    /// Notes the files that values come from. Of several, the last one counts.
    fileprivate mutating func note(from files: [(path: String, file: ManagedFile)], _ domain: Text) {
        for (path, file) in files {
            for key in (file.recommended[domain] ?? [:]).keys { recommendedSources[key] = path }
        }
        sources = recommendedSources
        for (path, file) in files { for key in file.locked[domain] ?? [] { sources[key] = path } }
        for (path, file) in files { for key in (file.forced[domain] ?? [:]).keys { sources[key] = path } }
        recommendedSources = recommendedSources.filter { sources[$0] != $1 }
    }

    /// Returns the path of the file that a value comes from.
    /// - Parameter isRecommended: whether it is the recommended value; otherwise it is the forced one.
    package func source(of key: Text, isRecommended: Bool) -> String? {
        (isRecommended ? recommendedSources[key] : nil) ?? sources[key]
    }
}

extension ManagedFile {
    /// Whether the file applies to nobody: its lists of users and groups are empty.
    package var isForNobody: Bool {
        (users != nil || groups != nil) && (users ?? []).isEmpty && (groups ?? []).isEmpty
    }

    /// Whether the file applies to a user: it names the user or one of the user's groups, or no users and no groups.
    fileprivate func isFor(_ user: ManagedUser) -> Bool {
        if users == nil && groups == nil { return true }
        if let name = user.name, users?.contains(name) == true { return true }
        return groups?.contains(where: user.groups.contains) == true
    }
}
