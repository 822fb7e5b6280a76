// SPDX-License-Identifier: Apache-2.0

// The backend for all storages of blobs. An account has a head for each device, segments that heads share, and a marker
// that identifies the account.
//
// The backend decides only from the content of blobs, never from what a storage says about a blob, nor from a missing
// one. What it keeps in memory between calls saves reads and writes, with one exception: which heads this process
// wrote. From these it notices a clone, a process that writes under the same origin.
//
// Each type owns what it knows, and uses those before it:
//
//   BlobAccount     the account in the remote, and its key; the markers in `a/`
//   SegmentFolder   the segments in `s/`: which are present, and intact
//   PartReader      the contents of segments
//   HeadFolder      the heads in `h/`, as they were last read
//   HeadWriter      how a head is cut
//   PartCutter      how a store is cut
//   OwnHead         this device's publication
//   BlobGarbage     which files may be removed
//
// This actor combines them, and remembers what was joined. They run only on its executor.

package import BackendSupport
public import Replication
package import Sealing

/// A backend on a storage of blobs.
public actor BlobBackend<Storage: BlobStorage>: RemoteBackend {
    private nonisolated let storage: Storage
    private let environment: Environment
    private let executor: any SerialExecutor
    private let account: BlobAccount<Storage>
    private let segments: SegmentFolder<Storage>
    private let parts: PartReader<Storage>
    private let heads: HeadFolder<Storage>
    private let writer: HeadWriter<Storage>
    private let cutter: PartCutter<Storage>
    private let own: OwnHead<Storage>
    private let garbage: BlobGarbage<Storage>
    private var joined = JoinedNews()
    private var witness = HeadWitness()
    /// Whether the last pull found damaged segments.
    private var foundDamage = false
    private var pulls = 0
    private var isClosed = false

    /// The executor on which heads and segments are decoded and hashed. The caller's thread has to answer all clients.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Makes a backend on a storage.
    /// - Parameter environment: the clock and random numbers.
    public init(storage: Storage, environment: Environment) {
        self.init(storage: storage, environment: environment, protection: .none)
    }

    /// Makes a backend on a storage whose account may be encrypted.
    package init(storage: Storage, environment: Environment, protection: Protection) {
        self.init(
            storage: storage, environment: environment, executor: ThreadExecutor(), budget: .shared,
            protection: protection)
    }

    /// Makes a backend on another executor, for a simulation.
    /// - Parameters:
    ///   - mostHeadBytes: the maximum size of all heads together, in bytes.
    ///   - budget: the limit of what all accounts hold in memory.
    package init(
        storage: Storage, environment: Environment, executor: any SerialExecutor, mostHeadBytes: Int = 64 << 20,
        budget: RemoteBudget = RemoteBudget(), protection: Protection = .none
    ) {
        let share = budget.share()
        (self.storage, self.environment, self.executor) = (storage, environment, executor)
        account = BlobAccount(storage, environment, protection)
        segments = SegmentFolder(storage, of: account)
        parts = PartReader(segments, of: account, share)
        heads = HeadFolder(storage, of: account, parts, share, mostBytes: mostHeadBytes)
        writer = HeadWriter(segments, parts, of: account)
        cutter = PartCutter(segments, parts)
        own = OwnHead(storage, of: account, segments, writer, share, environment)
        garbage = BlobGarbage(storage, heads, segments, own, environment)
    }

    /// What the storage costs, and whether it reports changes; known once the backend has been opened.
    public nonisolated var traits: BackendTraits { storage.traits }

    /// Hints that another device has changed something.
    public nonisolated func hints() -> AsyncStream<Void> { storage.hints() }

    /// Ends the hints; later calls throw. Doesn't wait for a call that waits for a disk.
    public func close() async {
        isClosed = true
        storage.close()
    }

    private func checkOpen() throws(RemoteError) {
        if isClosed { throw RemoteError(.unavailable, "The account was closed.") }
    }

    private func checkRemote() async throws(RemoteError) {
        try checkOpen()
        try await account.checkRemote()
    }

    // MARK: The account

    /// Checks that the remote can be used, and finds its account.
    public func open(creatingAccount createsAccount: Bool) async throws(RemoteError) -> RemoteAccount {
        try checkOpen()
        try await account.open(creatingAccount: createsAccount)
        let hasHeads = try await heads.checkFormat()
        var remote = account.remoteAccount(
            of: account.identifiers, isNew: account.identifiers.count == 1 && !hasHeads)
        remote.wasMade = account.wasMade
        return remote
    }

    /// Writes an account's marker if it is missing.
    public func restore(_ identifier: String) async throws(RemoteError) -> RemoteAccount {
        account.doubt()
        account.markers.forget()
        try checkOpen()
        return try await account.restore(identifier)
    }

    /// Checks the remote, and returns the account that it holds now.
    package func presentAccount() async throws(RemoteError) -> RemoteAccount {
        try await checkRemote()
        return try await account.look()
    }

    /// Returns a check's sentence about the encrypted account here, with the time that its marker states.
    package func encryptedAccount() async -> String {
        let since = await account.encryptedSince().map { ", since \(DayText.utc($0))" } ?? ""
        return "An encrypted account is here\(since). Its recovery phrase opens it."
    }

    // MARK: Pulling

    /// Whether this pull trusts neither the storage's versions nor known markers: the first, then every twentieth, each
    /// that begins from nothing, and each that reads back what this device has published.
    private var isThorough = true
    private var doubtsPublication = false

    /// Makes the next pull read back this device's head and its segments.
    public func doubtPublication() async { doubtsPublication = true }

    /// Begins to read what is new since a cursor.
    public func pull(
        after cursor: [UInt8]?, as origin: Origin, published count: UInt64
    ) async throws(RemoteError) -> any RemotePull {
        pulls += 1
        isThorough = pulls % 20 == 1 || cursor == nil || doubtsPublication
        account.markers.isThorough = isThorough
        heads.forgetListed()
        // The former pull may have failed.
        forgetUnneeded()
        if isThorough || own.haveOthersWritten { segments.forgetNames() }
        try await checkRemote()
        let cursor = cursor.map(BlobCursor.init(decoding:))
        if let cursor {
            garbage.resume(cursor.observations)
        } else {
            joined = JoinedNews()
            own.forgetJoined()
            witness.forget()
        }
        let (account, found) = try await look(as: origin)
        let publication = try await own.publication(
            in: found, as: origin, published: count, last: cursor?.own, isThorough: isThorough,
            doubtsSegments: doubtsPublication)
        doubtsPublication = false
        if own.readsAnew {
            joined.forgetStates()
            witness.forget()
        }
        joined.gaps.beginPull()
        var known = own.readsAnew ? [] : cursor?.heads ?? []
        // This device may no longer hold what it published before it began to download everything again.
        if cursor != nil, !own.readsAnew {
            known.formUnion(joined.heads.subtracting(joined.gaps.headsToRead))
            if let published = own.published, published.isTrusted { known.insert(published.digest) }
        }
        // What can't be read now may be there.
        let isLost = heads.hasFoundAll && heads.unreadable.isEmpty && witness.misses(in: found.heads.map(\.seen))
        return BlobPull(
            backend: self, account: account, found: found, known: known, joined: joined,
            ownPublication: publication.outdated(
                if: isLost || own.isOutdated(beside: found.heads, known, foundDamage: foundDamage)),
            formerOwn: cursor?.own)
    }

    /// Reads the heads, and the markers if they may have changed. An account without changes costs one listing.
    /// - Throws: also `RemoteError.unavailable` if the markers are others each time, as an account's only are once.
    private func look(as origin: Origin) async throws(RemoteError) -> (RemoteAccount, FoundHeads) {
        for _ in 0..<Self.mostLooks { if let found = try await lookOnce(as: origin) { return found } }
        throw RemoteError(.unavailable, "The account's markers change all the time.")
    }

    private static var mostLooks: Int { 4 }

    /// - Returns: `nil` if the markers have shown another account than the one that the heads were read for.
    private func lookOnce(as origin: Origin) async throws(RemoteError) -> (RemoteAccount, FoundHeads)? {
        let (known, before) = (isThorough ? nil : account.seen, heads.found)
        var present: RemoteAccount
        if let known { present = known } else { present = try await account.look() }
        var problems: [String]
        do { problems = try await heads.read(trustingVersions: !isThorough, as: origin) } catch {
            forgetUnneeded()
            throw error
        }
        let full = [BlobName.markers: account.markers.isFull, BlobName.segments: segments.isFull].filter(\.value)
        for folder in full.keys.sorted() {
            problems.append("The folder \(folder) holds too many files; some were not looked at.")
        }
        if own.note(heads.found, since: before, isThorough: isThorough) { segments.forgetNames() }
        if account.seen == nil || heads.areInDoubt(of: present, since: before, hasReadMarkers: known == nil) {
            let identifiers = account.identifiers
            present = try await account.look()
            // Heads under the new identifier were not resolved yet.
            if account.identifiers != identifiers { return nil }
        }
        let found = heads.found.values.sorted { ($0.name.utf8.count, $0.name) < ($1.name.utf8.count, $1.name) }
        return (present, FoundHeads(found, of: present, problems: problems))
    }

    /// Reads a part's state, for a pull.
    func readState(of part: Head.Part, store: String) async throws(RemoteError) -> PartContent {
        try await parts.readState(of: part, store: store)
    }

    /// Releases the memory of what was read, which is joined or no longer needed.
    func forgetNews() { parts.forgetNews() }

    /// Releases the memory of what was read, and of what is cached of segments that no head needs.
    private func forgetUnneeded() {
        let named = Set(heads.found.values.flatMap(\.head.segmentNames)).union(own.segmentNames)
        parts.forget(besides: named)
        segments.forget(besides: named)
        forgetNews()
    }

    /// Records what was joined, and makes the cursor.
    /// - Parameters:
    ///   - former: this device's last head, as the previous cursor has it.
    ///   - foundDamage: whether there are damaged segments that this device needs.
    func didJoin(_ news: JoinedNews, former: HeadIdentity?, foundDamage: Bool) async -> BlobCursor {
        own.noteJoined()
        witness.note(heads.found.values.map(\.seen), joined: news.heads)
        (joined, self.foundDamage) = (news, foundDamage)
        forgetUnneeded()
        garbage.noteHeads()
        await garbage.sweep()
        var cursor = BlobCursor()
        cursor.heads = news.heads.subtracting(news.gaps.heads)
        // The next process reads heads with corrupt states again, so that it reports them too.
        for found in heads.found.values
        where found.head.parts.contains(where: { news.corrupt[$0]?[$1.digest] != nil }) {
            cursor.heads.remove(found.digest)
        }
        cursor.own = own.identity ?? former
        cursor.observations = garbage.observations
        return cursor
    }

    // MARK: Pushing

    /// Begins to upload this device's state. Doesn't ask again for what the pull before it has read
    /// (docs/decisions/0018).
    public func push(_ publication: Publication) async throws(RemoteError) -> any RemotePush {
        if account.protection.move != nil { throw RemoteError.moving }
        let (present, names, there) = try await present(under: publication.origin)
        let wrapping = try account.wrapping
        guard present.isNamed(publication.account), let identifier = Bits128(publication.account) else {
            throw RemoteError(.reset, "There is another account here than the one that is signed in.")
        }
        // Another device's head may be under this one's name, where a sync tool or a user has copied it. No pull takes
        // it for this device's, so it is replaced.
        if let there, there.head.origin == publication.origin, present.isNamed(there.head.account.description),
            !own.mayReplace(there, of: publication.origin)
        {
            throw RemoteError(
                .unavailable, "A clone publishes under this device's origin, which the next poll replaces.")
        }
        let formerOrigins = OwnHeads.retired(
            publication.formerOrigins, present: names, as: publication.origin)
        return BlobPush(
            backend: self,
            publication: publication,
            account: identifier,
            wrapping: wrapping,
            own: there,
            former: try await formerHead(there, formerOrigins, of: present),
            formerOrigins: formerOrigins,
            foreign: heads.foreignParts(besides: publication.origin, present),
            present: try await segments.known(expecting: own.segmentNames)
        )
    }

    /// Returns the account, the names of the heads and the head under an origin's name: as the pull before this push
    /// has read them, or else as they are now.
    private func present(
        under origin: Origin
    ) async throws(RemoteError) -> (account: RemoteAccount, names: Set<String>, own: FoundHead?) {
        try await checkRemote()
        if let names = heads.listed, let seen = account.seen {
            heads.forgetListed()
            return (seen, names, heads.found[origin.description])
        }
        segments.forgetNames()
        let present = try await account.look()
        return (present, try await heads.names(), try await heads.read(of: origin))
    }

    /// Returns this device's last head: the one that it knows, or else one in the remote that looks like it.
    private func formerHead(
        _ there: FoundHead?,
        _ formerOrigins: [Origin],
        of account: RemoteAccount
    ) async throws(RemoteError) -> PublishedHead? {
        if let published = own.published { return published }
        if let there, account.isNamed(there.head.account.description) { return PublishedHead(doubting: there) }
        for origin in formerOrigins.reversed() {
            if let found = try await heads.read(of: origin), account.isNamed(found.head.account.description) {
                return PublishedHead(doubting: found)
            }
        }
        return nil
    }

    /// Returns the way of cutting a state that all devices prefer, for a push; `nil` if there is none.
    func sharedPart(
        _ digest: Bits128, _ content: StateContent?, of store: String, own: Head.Part?, among candidates: [Head.Part]
    ) async throws(RemoteError) -> Head.Part? {
        try await cutter.shared(digest, content, of: store, own: own, among: candidates)
    }

    /// Chooses the base over which to cut a state, for a push.
    func base(
        for digests: StateDigests, of store: String, among candidates: [Head.Part]
    ) async throws(RemoteError) -> (choice: BaseChoice, vector: VersionVector) {
        try await cutter.base(for: digests, of: store, among: candidates)
    }

    /// Writes the segments of a draft that the remote lacks.
    func ensure(_ draft: PartDraft<Wrapping>, present: Set<Bits128>) async throws(RemoteError) {
        try await writer.ensure(draft, present: present)
    }

    /// This device's last head; `nil` if unknown.
    var published: PublishedHead? { own.published }

    /// Writes a head under this device's name.
    func publish(
        _ head: Head, unlikeLength length: Int?, present: Set<Bits128>
    ) async throws(RemoteError) {
        try checkOpen()
        let (former, now) = try await own.publish(head, unlikeLength: length, present: present)
        witness.forget()
        await garbage.noteReplaced(former, by: now)
    }

    /// Removes the head of an origin that this device no longer uses, once all of it is joined here.
    func retire(_ origin: Origin, upTo sequence: UInt64) async throws(RemoteError) {
        if try await own.retire(origin, upTo: sequence, joined: joined.heads) { garbage.noteRetired(origin) }
    }

    // MARK: Garbage

    /// Removes heads of devices that are gone or forgotten, segments that no head names, and files that a crash left
    /// half written.
    public func collectGarbage(_ request: GarbageCollection) async throws(RemoteError) {
        if account.protection.move != nil { throw RemoteError.moving }
        let present = try await presentAccount()
        guard present.isNamed(request.account) else {
            throw RemoteError(.reset, "There is another account here than the one that is signed in.")
        }
        try await garbage.collect(request, of: present, after: joined)
    }
}

extension BlobBackend: KeyHolding {
    package var heldKey: HeldKey? { account.protection.held }

    package func noteJoining(from former: AccountKey?, _ forms: FormerForms) async throws {
        try await account.noteJoining(from: former, forms)
    }

    package func rejectOtherKeys(andSuccessors successors: Bool) async throws {
        try checkOpen()
        try await account.rejectOtherKeys(andSuccessors: successors)
    }

    package func awaitOtherKey(besides formerNames: Set<String>) async throws {
        try checkOpen()
        try await account.awaitOtherKey(besides: formerNames)
    }

    package func checkKey() async -> [BackendCheck] {
        do throws(RemoteError) {
            _ = try await open(creatingAccount: false)
            guard let held = account.protection.held else { throw RemoteError.keyNeeded }
            let uploads = try await FoundUploads(in: storage, under: held)
            let markers = try await account.markers.read(account.protection)
            let others = markers.seen.sealed.filter { $0.identifier != held.key.identifier }
            return [uploads.check] + uploads.leftovers(others, held)
        } catch {
            return [BackendCheck(step: "key", failed: error)]
        }
    }

    package func removeFormerForms() async throws {
        guard let former = account.former else { return }
        try await checkRemote()
        try await account.confirmFormerNames()
        try await FormerFormRemoval(storage: storage, former: former).run()
        segments.forgetNames()
        account.noteFormerRemoved()
    }
}
