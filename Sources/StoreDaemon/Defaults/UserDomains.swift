// SPDX-License-Identifier: Apache-2.0

internal import AppManifest
internal import ManagedDefaults
internal import PropertyList
internal import SDBus
internal import StoreBus
internal import StoreEngine

/// A user's defaults domains. Each of their layers is a store: see `DomainLayer`.
@BusActor
final class UserDomains {
    unowned let user: User
    private let service: ServiceContext
    private let managedDirectories: ManagedDirectories
    /// The sizes of the layers.
    let sizes: LayerSizes
    /// The calls that open domains. Each may take long, so a user's are carried out one after the other.
    let openings = TurnQueue()

    init(of user: User, in service: ServiceContext, managed: ManagedDirectories) {
        self.user = user
        self.service = service
        managedDirectories = managed
        sizes = LayerSizes(of: user, writes: service.writes)
    }

    /// The most domains that a sandboxed app may have, and the most bytes in them together.
    static let ofOneApp = (domains: 16, bytes: 16 << 20)

    // MARK: Access

    func access(of caller: CallerIdentity, to domain: String) -> DomainAccess {
        user.manifests.access(of: caller, to: domain)
    }

    private func writable(by caller: CallerIdentity, among domains: Set<Text>) -> Set<Text> {
        let access = user.manifests.access(of: caller)
        return domains.filter { access($0.string) == .write }
    }

    // MARK: Names and room

    /// The names of the domains that hold a value, sorted.
    func names() throws -> [String] { try sizes.domains.sorted().map(\.string) }

    /// Throws if the write would begin a domain beyond the user's or the app's bound.
    func checkRoom(for layer: UserStore, of caller: CallerIdentity) throws {
        guard let domain = layer.layer?.domain, layer.store.usage.keys == 0 else { return }
        let others = try sizes.domains.subtracting([Text(domain)])
        let bound = service.configuration.bounds.domains
        guard others.count < bound else {
            throw BusError.limitsExceeded(
                "The user has \(bound) domains, and may have no more. See ubiquitousctl defaults domains.")
        }
        guard caller.engine == .flatpak else { return }
        guard writable(by: caller, among: others).count < Self.ofOneApp.domains else {
            throw BusError.limitsExceeded(
                "The app has \(Self.ofOneApp.domains) domains, and in a sandbox it may have no more. Remove one.")
        }
    }

    /// Refuses a sandboxed app's write if its domains have no room for it.
    func checkRoom(forBytes bytes: Int, of caller: CallerIdentity) throws {
        guard caller.engine == .flatpak else { return }
        let used = try sizes.bytes(of: writable(by: caller, among: sizes.domains))
        guard used + bytes <= Self.ofOneApp.bytes else {
            throw BusError.store(
                .quotaExceeded,
                """
                The app's domains have \(used) bytes, the write needs \(bytes), and a sandboxed app may have \
                \(Self.ofOneApp.bytes). Remove values.
                """)
        }
    }

    // MARK: Managed settings

    /// Returns the managed settings of a domain for a caller.
    func managed(_ domain: String, for peer: Peer) -> ManagedDomain {
        managedDirectories.settings.isEmpty
            ? ManagedDomain() : managedDirectories.settings.domain(Text(domain), for: managedUser(peer))
    }

    /// Returns the domains that managed settings name, for a caller.
    func managedNames(for peer: Peer) -> [String] {
        managedDirectories.settings.domains(for: managedUser(peer)).map(\.string)
    }

    /// Returns a caller as managed settings identify users.
    func managedUser(_ peer: Peer) -> ManagedUser {
        // When root reads another user's domain, the bus doesn't tell that user's groups.
        let groups = peer.credentials.uid == user.uid ? peer.credentials.groups : []
        return managedDirectories.managedUser(named: user.directory.ownerName, groups: groups)
    }

    // MARK: Programs

    /// A program, as defaults domains see it.
    struct Program {
        /// The program's own domain.
        let domain: String
        /// The store of the keys that roam; `nil` if none roam.
        let store: String?
        /// The keys that roam, by the program's manifest.
        let ubiquitous: KeyPatterns
    }

    /// Returns the program by the manifest that names it, or else by its file name.
    func program(_ path: String, for caller: CallerIdentity) throws(BusError) -> Program {
        let isApp = caller.engine == .flatpak
        let found = user.manifests.all.filter { manifest in
            if isApp { return manifest.applicationIdentifier == caller.applicationIdentifier }
            return manifest.executables.contains { $0.utf8.elementsEqual(path.utf8) }
        }
        if let manifest = found.first, Set(found.map(\.applicationIdentifier)).count == 1 {
            let store = Set(found.map(\.identifier)).count == 1 ? manifest.identifier : nil
            return Program(
                domain: manifest.applicationIdentifier, store: store,
                ubiquitous: KeyPatterns(found.flatMap(\.ubiquitousDefaults).map { Text($0) }))
        }
        let name = isApp ? caller.applicationIdentifier : String(path.split(separator: "/").last ?? "")
        if DomainName.problem(name) != nil || name == ManagedFile.globalDomain.string {
            throw .invalidArguments("The program \"\(path)\" has no domain of its own; name one.")
        }
        return Program(domain: name, store: nil, ubiquitous: .none)
    }
}
