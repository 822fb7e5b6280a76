// SPDX-License-Identifier: Apache-2.0

// What the sync engine expects of a backend: it stores states and returns them, and decides nothing. docs/backends.md
// has its contract, C1 to C5, which `BackendConformance` tests.
//
// An error ends the cycle, and nothing is lost. The code decides what follows:
//
//   reset, keyNeeded   No cycle until the user decides, enters the phrase or asks for a cycle.
//   unauthorized       The next cycle is an hour later, because servers lock out who repeats a wrong password.
//   all others         The next cycle follows after a pause that grows with each failure, up to 15 minutes. With
//                      `unavailable` the account is offline; with the others, its user sees an error.
//
// `retryAfter` lengthens each pause.

internal import PlainText

/// A remote that a user's devices share.
public protocol RemoteBackend: AnyObject, Sendable {
    /// What the backend costs, and whether it reports changes. Sync must be correct whatever the traits say.
    var traits: BackendTraits { get }

    /// Checks that the remote can be used, and finds its account.
    /// - Parameter createsAccount: whether to create an account if there is none.
    /// - Throws: ``RemoteError`` with the code `noAccount` if there is none and `createsAccount` is false, or
    ///   `keyNeeded` if it is encrypted and this device doesn't have its key.
    func open(creatingAccount createsAccount: Bool) async throws(RemoteError) -> RemoteAccount

    /// Puts back an account that is gone from the remote. If another account was created there meanwhile, the two
    /// become one, under the smaller identifier.
    /// - Parameter account: the identifier of the account that is gone.
    /// - Throws: ``RemoteError`` with the code `keyNeeded` if an encrypted account is there and this device doesn't
    ///   have its key, or `unsupported` if the remote can't hold an account of this identifier.
    func restore(_ account: String) async throws(RemoteError) -> RemoteAccount

    /// Begins to read what is new.
    /// - Parameters:
    ///   - cursor: where the last pull ended; `nil` to read everything.
    ///   - origin: the origin under which this device publishes. The backend looks there for another writer's
    ///     publication.
    ///   - count: how often this device has begun to publish under that origin. A publication up to that number may
    ///     come from the previous process.
    /// - Throws: ``RemoteError`` with the code `reset` if the account is gone, or another one is there.
    func pull(
        after cursor: [UInt8]?, as origin: Origin, published count: UInt64
    ) async throws(RemoteError) -> any RemotePull

    /// Begins to upload this device's state.
    /// - Throws: ``RemoteError`` with the code `reset` if the account is gone, or another one is there.
    func push(_ publication: Publication) async throws(RemoteError) -> any RemotePush

    /// Makes the next pull read back what this device has published, even if nothing seems to have changed. A backend
    /// whose remote can't lose what it has acknowledged does nothing.
    func doubtPublication() async

    /// Removes what nobody needs any more: heads of devices that are gone, blobs that no head names, files that a crash
    /// left half written. It may be interrupted and repeated. If it removes something too early, a device that still
    /// holds it writes it again. A backend without leftovers does nothing.
    ///
    /// The engine calls it after a pull, at most once a day, and when the user has removed a device from the list. The
    /// backend decides by what its own pulls have seen, and records in the cursor for how long it has seen it.
    /// - Throws: ``RemoteError``, which the engine ignores. What matters fails in the next pull too, and the next
    ///   collection comes a day later.
    func collectGarbage(_ request: GarbageCollection) async throws(RemoteError)

    /// Hints that a poll is worthwhile; they may be missing, late or wrong. The stream ends when the backend is closed.
    func hints() -> AsyncStream<Void>

    /// Ends what is under way. Later calls throw.
    func close() async
}

extension RemoteBackend {
    /// Reads what is new since a cursor, for a device that has published nothing.
    public func pull(after cursor: [UInt8]?, as origin: Origin) async throws(RemoteError) -> any RemotePull {
        try await pull(after: cursor, as: origin, published: 0)
    }

    /// Does nothing.
    public func doubtPublication() async {}
}

/// A pull under way: what was new when it began.
public protocol RemotePull: Sendable {
    /// The account that the remote holds now.
    var account: RemoteAccount { get }
    /// The devices that have published, by their origins.
    var devices: [Origin: RemoteDevice] { get }
    /// The identifiers of the stores that have something new.
    var stores: [String] { get }
    /// What the pull found under this device's origin.
    var ownPublication: OwnPublication { get }
    /// What could not be read so far and was skipped, as sentences for users. Reading a store may add some, so the
    /// engine asks again afterwards.
    var problems: [String] { get }

    /// Reads what is new of a store: the states of all devices that publish it, or what has changed in them.
    /// - Throws: ``RemoteError`` if the remote didn't answer. What can't be read is left out and named in ``problems``.
    func change(of store: String) async throws(RemoteError) -> RemoteChange

    /// Ends the pull.
    /// - Parameter stores: the stores whose changes were joined and committed.
    /// - Returns: the cursor for the next pull.
    func finish(joined stores: Set<String>) async -> PullResult
}

/// What is new of a store.
public struct RemoteChange: Equatable, Sendable {
    /// The states that could be read, joined with each other.
    public let states: JoinedStates
    /// Whether all states could be read. If not, some have not arrived in the remote yet.
    public let isComplete: Bool
    /// Whether the entries are only those that have changed since the cursor. The version vector is whole all the same,
    /// and a missing key means that its entry is as it was.
    public let isDelta: Bool

    /// A change with one state.
    public init(state: StoreState, isComplete: Bool, isDelta: Bool = false) {
        self.init(JoinedStates(state), isComplete: isComplete, isDelta: isDelta)
    }

    /// Makes a change from its parts.
    public init(_ states: JoinedStates, isComplete: Bool, isDelta: Bool = false) {
        self.states = states
        self.isComplete = isComplete
        self.isDelta = isDelta
    }
}

/// How a pull ended.
public struct PullResult: Equatable, Sendable {
    /// Where the next pull starts. The engine stores it once all changes are committed.
    public let cursor: [UInt8]
    /// Whether the pull read everything that the remote has, joined or not.
    public let isComplete: Bool
    /// The origins of devices whose publications are in the remote only in part, if it is these that the pull lacks.
    public let lackingOrigins: Set<Origin>

    /// Makes a result from its parts.
    public init(cursor: [UInt8], isComplete: Bool, lackingOrigins: Set<Origin> = []) {
        self.cursor = cursor
        self.isComplete = isComplete
        self.lackingOrigins = lackingOrigins
    }
}

/// What a pull found under this device's origin.
public enum OwnPublication: Sendable {
    /// This process's last publication, or nothing if it has published nothing.
    case asPublished
    /// This process's last publication. It is intact, but the device publishes again:
    ///
    /// - after a day, if others have published what this device has joined since. Then the loss of another device loses
    ///   nothing, and devices come to share segments.
    /// - after an hour, if others' data is damaged, because only this tells their devices.
    /// - at once, if something that this device has joined is gone from the remote.
    case outdated
    /// Nothing, or an older publication. The device publishes again.
    case missing
    /// A publication that this process did not make: a clone writes under the same origin.
    case foreign
}

/// An upload under way.
public protocol RemotePush: Sendable {
    /// The identifiers of the stores whose state the backend needs.
    var stores: [String] { get }
    /// Uploads the state of one of ``stores``.
    /// - Throws: ``RemoteError`` with the code `full` if the remote has no room for the state, or no reader would
    ///   accept one that large.
    func upload(_ snapshot: StoreSnapshot) async throws(RemoteError)
    /// Makes the upload visible to other devices. Once this returns, C1 holds for it.
    /// - Throws: ``RemoteError``. The upload may be visible all the same, and the next cycle publishes again.
    func finish() async throws(RemoteError)
}

/// What a device is about to publish.
public struct Publication: Sendable {
    /// The account's identifier, as this device knows it.
    public let account: String
    /// The origin under which the device publishes.
    public let origin: Origin
    /// The origins under which it published before. Once this publication has finished, the backend may remove theirs.
    public let formerOrigins: [Origin]
    /// How often the device has begun to publish under each of these origins, this time included. A publication under a
    /// former origin with a greater number is a clone's, and must stay.
    public let counts: [Origin: UInt64]
    /// The device that publishes.
    public let device: RemoteDevice
    /// All stores of the account that this device holds.
    public let stores: [AccountStore]
    /// Microseconds since 1970, by the device's clock.
    public let time: UInt64

    /// Makes a publication from its parts.
    public init(
        account: String, origin: Origin, formerOrigins: [Origin], counts: [Origin: UInt64], device: RemoteDevice,
        stores: [AccountStore], time: UInt64
    ) {
        self.account = account
        self.origin = origin
        self.formerOrigins = formerOrigins
        self.counts = counts
        self.device = device
        self.stores = stores
        self.time = time
    }
}

/// A request to collect garbage.
public struct GarbageCollection: Sendable {
    /// The account's identifier, as this device knows it.
    public let account: String
    /// The origin under which this device publishes. Its publication stays.
    public let origin: Origin
    /// The origins of devices that the user has removed from the list. Their publications may go as soon as this device
    /// has joined all of them and published the result. Such a device publishes again if it comes back.
    public let forgottenOrigins: Set<Origin>
    /// Microseconds since 1970, by the device's clock. If the clock has jumped, at most one day may count as passed.
    public let time: UInt64

    /// Makes a request from its parts.
    public init(account: String, origin: Origin, forgottenOrigins: Set<Origin>, time: UInt64) {
        self.account = account
        self.origin = origin
        self.forgottenOrigins = forgottenOrigins
        self.time = time
    }
}

/// A device as others see it.
public struct RemoteDevice: Hashable, Sendable {
    /// The device's random identifier, which stays the same as long as its database; at most 255 bytes.
    public let identifier: String
    /// The name that users see: at most 255 bytes, without control characters.
    public let name: String

    /// Makes a device from its parts. Text that another device wrote is truncated and cleaned.
    public init(identifier: String, name: String) {
        self.identifier = identifier.cleaned(atMost: 255, ending: "")
        self.name = name.cleaned(atMost: 255, ending: "")
    }

    /// Whether a user may give a device this name: 1 to 255 bytes, all of which can be shown.
    package static func isName(_ name: String) -> Bool {
        (1...255).contains(name.utf8.count) && name.cleaned(atMost: 255, ending: "") == name
    }
}

/// An account in a remote.
public struct RemoteAccount: Equatable, Sendable {
    /// The account's identifier: the smallest, if several devices created the account at the same time.
    public let identifier: String
    /// The other identifiers, if several devices created the account at the same time.
    public let aliases: Set<String>
    /// The account's identifiers before it moved to its present key. A device that signed out before that knows the
    /// account by one of them.
    public let formerNames: Set<String>
    /// Whether nobody has published anything yet, as far as the remote shows.
    public let isNew: Bool
    /// Whether opening it has made it.
    public var wasMade = false
    /// Whether it was opened with its key.
    package var isEncrypted = false

    /// Makes an account from its parts.
    public init(
        identifier: String, aliases: Set<String> = [], formerNames: Set<String> = [], isNew: Bool = false
    ) {
        self.identifier = identifier
        self.aliases = aliases
        self.formerNames = formerNames
        self.isNew = isNew
    }

    /// Makes an account that is opened with its key.
    package init(encrypted identifier: String, aliases: Set<String>) {
        self.init(identifier: identifier, aliases: aliases)
        isEncrypted = true
    }

    /// Returns the account without some of its names; `nil` if no other is left.
    package func without(_ names: Set<String>) -> RemoteAccount? {
        let left = aliases.union([identifier]).subtracting(names).sorted()
        guard let first = left.first else { return nil }
        var account = RemoteAccount(
            identifier: first, aliases: Set(left.dropFirst()), formerNames: formerNames, isNew: isNew)
        (account.wasMade, account.isEncrypted) = (wasMade, isEncrypted)
        return account
    }

    /// Whether an identifier is this account's: its own or an alias.
    public func isNamed(_ identifier: String) -> Bool {
        self.identifier == identifier || aliases.contains(identifier)
    }
}

/// What a backend costs.
public struct BackendTraits: Equatable, Sendable {
    /// How long a change waits for others before it is uploaded.
    public let coalescing: Duration
    /// How long the first change waits after ten seconds without an upload; at most ``coalescing``.
    public let firstWait: Duration
    /// Whether the backend sends a hint for every change, so that polling without one is only a precaution.
    public let givesHints: Bool
    /// Whether each object reaches other devices separately, late and in any order, as in a folder that Syncthing
    /// replicates.
    public let replicatesSeparately: Bool

    /// Makes traits from their parts.
    public init(
        coalescing: Duration, firstWait: Duration = .milliseconds(50), givesHints: Bool,
        replicatesSeparately: Bool = false
    ) {
        self.coalescing = coalescing
        self.firstWait = min(firstWait, coalescing)
        self.givesHints = givesHints
        self.replicatesSeparately = replicatesSeparately
    }
}
