// SPDX-License-Identifier: Apache-2.0

package import PropertyList

/// What administrators say about one domain, to one user.
package struct ManagedDomain: Equatable, Sendable {
    /// Values that win over everything.
    package var forced: [Text: Value] = [:]
    /// Keys whose values in the layers 2 to 7 are hidden.
    package var locked = KeyPatterns.none
    /// Values that win over registered ones only.
    package var recommended: [Text: Value] = [:]
    /// Keys that live in the app's synced store; `nil` leaves that to the manifest.
    package var ubiquitous: KeyPatterns?
    /// The file that each forced or recommended value, and each locked pattern, is from.
    package var sources: [Text: String] = [:]

    /// Nothing is managed.
    package init() {}

    /// The keys of which one is managed and the other not, or otherwise.
    package func difference(from other: ManagedDomain) -> Set<Text> {
        var keys = Set(forced.keys).union(other.forced.keys).filter { forced[$0] != other.forced[$0] }
        keys.formUnion(
            Set(recommended.keys).union(other.recommended.keys).filter { recommended[$0] != other.recommended[$0] })
        keys.formUnion(Set(locked.patterns).symmetricDifference(other.locked.patterns))
        let (mine, others) = (ubiquitous?.patterns ?? [], other.ubiquitous?.patterns ?? [])
        let roaming = Set(mine).symmetricDifference(others)
        // An empty list says that none roam, and an absent one leaves that to the manifest, which may name any.
        if roaming.isEmpty && (ubiquitous == nil) != (other.ubiquitous == nil) { keys.insert("*") }
        return keys.union(roaming)
    }
}

/// A user, as the files of managed settings name users.
package struct ManagedUser: Hashable, Sendable {
    /// The user's name; `nil` where it can't be told.
    package let name: String?
    /// The names of the user's groups.
    package let groups: Set<String>

    /// A user.
    package init(name: String?, groups: Set<String> = []) {
        self.name = name
        self.groups = groups
    }
}

/// The files of managed settings that are in force, merged key by key: a later one wins.
package struct ManagedSettings: Equatable, Sendable {
    package let files: [(path: String, file: ManagedFile)]

    /// Files in the order of their names.
    package init(_ files: [(path: String, file: ManagedFile)] = []) {
        self.files = files
    }

    package static func == (left: Self, right: Self) -> Bool {
        left.files.elementsEqual(right.files) { $0.path == $1.path && $0.file == $1.file }
    }

    /// Whether no file says anything.
    package var isEmpty: Bool { files.isEmpty }

    /// The names of groups that decide about something.
    package var groupNames: Set<String> { Set(files.flatMap { $0.file.groups ?? [] }) }

    /// The domains that a file names for a user.
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

    /// What is managed of a domain, for a user.
    package func domain(_ domain: Text, for user: ManagedUser) -> ManagedDomain {
        var managed = ManagedDomain()
        for (path, file) in files where file.isFor(user) {
            managed.recommended.merge(file.recommended[domain] ?? [:]) { $1 }
            managed.forced.merge(file.forced[domain] ?? [:]) { $1 }
            managed.locked.add(file.locked[domain] ?? [])
            if let keys = file.ubiquitous[domain] { managed.ubiquitous = KeyPatterns(keys) }
            managed.note((file.recommended[domain] ?? [:]).keys, from: path)
            managed.note(file.locked[domain] ?? [], from: path)
        }
        // What is forced decides, whichever file recommends something else.
        for (path, file) in files where file.isFor(user) {
            managed.note((file.forced[domain] ?? [:]).keys, from: path)
        }
        return managed
    }
}

extension ManagedDomain {
    fileprivate mutating func note(_ keys: some Sequence<Text>, from path: String) {
        for key in keys { sources[key] = path }
    }
}

extension ManagedFile {
    /// Whether it is for a user: one of its users or in one of its groups, or it names neither.
    fileprivate func isFor(_ user: ManagedUser) -> Bool {
        if users == nil && groups == nil { return true }
        if let name = user.name, users?.contains(name) == true { return true }
        return groups?.contains(where: user.groups.contains) == true
    }
}
