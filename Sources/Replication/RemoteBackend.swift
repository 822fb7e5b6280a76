// SPDX-License-Identifier: Apache-2.0

// What a remote backend is to the sync engine: something that is given states and gives them back.
//
// It decides nothing. What it promises is in five sentences:
//
//   C1  After a push has finished, every later complete pull by anyone returns its entries, or a state
//       whose version vector has their dots.
//   C2  Only what was pushed is returned.
//   C3  A version vector is never returned without the entries that it covers.
//   C4  Every call may be repeated, and cut anywhere.
//   C5  Nothing is promised about order, exactly-once, freshness, clocks, locks, conditions, or about several
//       stores together.

internal import PlainText

/// A remote that a user's devices share.
public protocol RemoteBackend: Sendable {
    /// What the backend costs, and whether it tells of changes. No trait may influence correctness.
    var traits: BackendTraits { get }

    /// Checks that the place can be used and finds its account.
    /// - Parameter createsAccount: makes an account where there is none.
    /// - Throws: `RemoteError.noAccount` if there is none and none is to be made.
    func open(creatingAccount createsAccount: Bool) async throws(RemoteError) -> RemoteAccount

    /// Makes an account that is gone from the place be there again, whatever else is there: an account that was made
    /// there meanwhile is from now on the same one, under the smaller of the identifiers.
    /// - Parameter account: its identifier.
    func restore(_ account: String) async throws(RemoteError) -> RemoteAccount

    /// Reads what is new since a cursor; `nil` is everything.
    /// - Parameters:
    ///   - origin: under which this device publishes, so that another writer's publication under it is noticed.
    ///   - count: how often this device has begun to publish under it. A publication that is no later may be of the
    ///     process before this one.
    func pull(
        after cursor: [UInt8]?, as origin: Origin, published count: UInt64
    ) async throws(RemoteError) -> any RemotePull

    /// Begins to upload this device's state.
    func push(_ publication: Publication) async throws(RemoteError) -> any RemotePush

    /// Removes what is no longer needed: heads of devices that are gone, blobs that no device refers to, files that a
    /// crash left half written. It may be cut anywhere and repeated, and does no harm: a device that holds what was
    /// removed too early writes it again. A backend that leaves nothing over does nothing.
    ///
    /// It goes by what this backend has seen in its own pulls, and remembers for how long in the cursor of the next
    /// one; so it follows a pull, at most once a day, or once a device was forgotten.
    func collectGarbage(_ request: GarbageCollection) async throws(RemoteError)

    /// Says "look now"; it may be silent, late and wrong. Ends when the backend is closed.
    func hints() -> AsyncStream<Void>

    /// Ends everything that is under way.
    func close() async
}

extension RemoteBackend {
    /// Reads what is new since a cursor, for a device that has published nothing.
    public func pull(after cursor: [UInt8]?, as origin: Origin) async throws(RemoteError) -> any RemotePull {
        try await pull(after: cursor, as: origin, published: 0)
    }
}

/// What was new when a pull looked.
public protocol RemotePull: Sendable {
    /// The account as it is there now.
    var account: RemoteAccount { get }
    /// What devices have called the origins under which they published.
    var devices: [Origin: RemoteDevice] { get }
    /// The stores that have something new.
    var stores: [String] { get }
    /// What became of this device's own publication.
    var ownPublication: OwnPublication { get }
    /// What could not be read so far, in words for users: damaged objects are skipped, the rest counts. What is
    /// found as stores are read is added, so it is asked for again after that.
    var problems: [String] { get }

    /// Reads a store's news: the states of all who publish it, or what has changed in them.
    func change(of store: String) async throws(RemoteError) -> RemoteChange

    /// Ends the pull.
    /// - Parameter stores: those whose news were joined and committed.
    /// - Returns: the cursor to go on from.
    func finish(joined stores: Set<String>) async -> PullResult
}

/// What is new of a store.
public struct RemoteChange: Equatable, Sendable {
    /// The states of those that could be read.
    public let states: JoinedStates
    /// Whether all of them could: the others have not arrived yet.
    public let isComplete: Bool
    /// Only what became another one since the cursor is among the entries; of all other keys there is what there was
    /// then. The version vector is whole all the same.
    public let isDelta: Bool

    /// A change of one state.
    public init(state: StoreState, isComplete: Bool, isDelta: Bool = false) {
        self.init(JoinedStates(state), isComplete: isComplete, isDelta: isDelta)
    }

    /// A change of its parts.
    public init(_ states: JoinedStates, isComplete: Bool, isDelta: Bool = false) {
        self.states = states
        self.isComplete = isComplete
        self.isDelta = isDelta
    }
}

/// How a pull ended.
public struct PullResult: Equatable, Sendable {
    /// To be kept once all changes are committed.
    public let cursor: [UInt8]
    /// Whether everything that was there was read, joined or not.
    public let isComplete: Bool

    /// A result of its parts.
    public init(cursor: [UInt8], isComplete: Bool) {
        self.cursor = cursor
        self.isComplete = isComplete
    }
}

/// What a pull found under the name under which this device publishes.
public enum OwnPublication: Sendable {
    /// What this process put there, or nothing where it put nothing.
    case asPublished
    /// What this process put there, and for a day others have published what this device has taken in since. It is to
    /// be put there anew, so that no device's loss loses anything, and all come to share what they hold alike.
    case outdated
    /// Nothing, or something older: it has to be put there again.
    case missing
    /// Something that this process did not write: a clone writes under the same origin.
    case foreign
}

/// An upload that is under way.
public protocol RemotePush: Sendable {
    /// The stores whose state the backend needs.
    var stores: [String] { get }
    /// Uploads the state of one of them.
    func upload(_ snapshot: StoreSnapshot) async throws(RemoteError)
    /// Makes what was uploaded visible to others. When it returns, they are going to see it.
    func finish() async throws(RemoteError)
}

/// What a device is about to publish.
public struct Publication: Sendable {
    /// The account, under the identifier that this device knows.
    public let account: String
    /// Under which the device publishes.
    public let origin: Origin
    /// Under which it published before; what is left there may go when this publication has finished.
    public let formerOrigins: [Origin]
    /// How often it has begun to publish under each of these, this time included. What is there under a former origin
    /// and was published later is a clone's: that of the disk from which this one was copied.
    public let counts: [Origin: UInt64]
    /// The device's own name for itself.
    public let device: RemoteDevice
    /// All stores of the account that this device holds.
    public let stores: [AccountStore]
    /// Microseconds since 1970, by the device's clock.
    public let time: UInt64

    /// A publication of its parts.
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

/// Which device collects garbage, and what the user has said about it.
public struct GarbageCollection: Sendable {
    /// The account, under the identifier that this device knows.
    public let account: String
    /// Under which this device publishes: what is there of it stays.
    public let origin: Origin
    /// Those of devices that the user has forgotten. What they published may go as soon as all of it was joined
    /// here and is in what this device has published; a device that was forgotten and comes back publishes anew.
    public let forgottenOrigins: Set<Origin>
    /// Microseconds since 1970, by the device's clock. A clock that jumps makes nothing go early by more than a day.
    public let time: UInt64

    /// A request of its parts.
    public init(account: String, origin: Origin, forgottenOrigins: Set<Origin>, time: UInt64) {
        self.account = account
        self.origin = origin
        self.forgottenOrigins = forgottenOrigins
        self.time = time
    }
}

/// A device as others see it.
public struct RemoteDevice: Hashable, Sendable {
    /// Random, and the same as long as the device's database lives.
    public let identifier: String
    /// For people; 255 bytes at most, without control characters.
    public let name: String

    /// A device of its parts. Each is cut and cleaned where another device wrote what can't be shown.
    public init(identifier: String, name: String) {
        self.identifier = identifier.cleaned(atMost: 255, ending: "")
        self.name = name.cleaned(atMost: 255, ending: "")
    }
}

/// An account as the remote has it.
public struct RemoteAccount: Equatable, Sendable {
    /// The smallest of the identifiers that devices have given it.
    public let identifier: String
    /// The others, where several devices made the account at once.
    public let aliases: Set<String>
    /// What it was called in forms that are not read any more: a device that had left it by then knows it by these.
    public let formerNames: Set<String>
    /// Nothing was published to it yet, as far as can be seen.
    public let isNew: Bool

    /// An account of its parts.
    public init(
        identifier: String, aliases: Set<String> = [], formerNames: Set<String> = [], isNew: Bool = false
    ) {
        self.identifier = identifier
        self.aliases = aliases
        self.formerNames = formerNames
        self.isNew = isNew
    }

    /// Whether this is the account of an identifier.
    public func isNamed(_ identifier: String) -> Bool {
        self.identifier == identifier || aliases.contains(identifier)
    }
}

/// What a backend costs.
public struct BackendTraits: Equatable, Sendable {
    /// How long a change waits for others before it is uploaded.
    public let coalescing: Duration
    /// How long the first change after a quiet time waits.
    public let firstWait: Duration
    /// Hints come for every change, so that looking without one is only a precaution.
    public let tellsOfChanges: Bool
    /// Each object reaches other devices by itself, late and in any order, as in a folder that is synchronized.
    public let replicatesSeparately: Bool

    /// Traits of their parts.
    public init(
        coalescing: Duration, firstWait: Duration = .milliseconds(50), tellsOfChanges: Bool,
        replicatesSeparately: Bool = false
    ) {
        self.coalescing = coalescing
        self.firstWait = min(firstWait, coalescing)
        self.tellsOfChanges = tellsOfChanges
        self.replicatesSeparately = replicatesSeparately
    }
}
