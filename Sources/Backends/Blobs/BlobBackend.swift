// SPDX-License-Identifier: Apache-2.0

// The backend of everything that stores blobs: a head for each device, segments that heads share, and a marker
// that says whose they are.
//
// Nothing is decided from what a storage says about a blob, or from a blob that is not there: only from content.
// What is kept in memory between calls saves reading and writing, with one exception: which heads this process
// wrote. With that it notices a clone, a process that writes under the same origin.
//
// Each part owns what it knows, and asks those before it:
//
//   BlobAccount     whose place it is, and under which key; the markers in `a/`
//   SegmentFolder   `s/`: what is there, and good
//   PartReader      what is in segments
//   HeadFolder      `h/`: the heads that were there at the last look
//   HeadWriter      how a head is cut
//   OwnHead         what this device publishes
//   BlobGarbage     what may go
//
// This actor puts them together, and remembers what was joined. They run on its executor, and nowhere else.

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
    private var pulls = 0
    private var isClosed = false

    /// Heads and segments are decoded and hashed away from whoever calls, which is the thread that answers everybody.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// A backend on a storage.
    /// - Parameter environment: the time in markers, and random identifiers.
    public init(storage: Storage, environment: Environment) {
        self.init(storage: storage, environment: environment, protection: .none)
    }

    /// A backend on an account of which something is known.
    package init(storage: Storage, environment: Environment, protection: Protection) {
        self.init(
            storage: storage, environment: environment, executor: ThreadExecutor(), budget: .shared,
            protection: protection)
    }

    /// A backend that runs elsewhere: for a simulation.
    /// - Parameters:
    ///   - mostHeadBytes: what all heads together may take.
    ///   - budget: what all accounts hold in memory has a bound, too.
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
        own = OwnHead(storage, of: account, segments, writer, environment)
        garbage = BlobGarbage(storage, heads, segments, own, environment)
    }

    /// What the storage costs, and whether it tells of changes; known once the backend has been opened.
    public nonisolated var traits: BackendTraits { storage.traits }

    /// Says "look now" when somebody else changed something.
    public nonisolated func hints() -> AsyncStream<Void> { storage.hints() }

    /// Ends hints; calls that follow fail. A call that waits for a disk is not waited for.
    public func close() async {
        isClosed = true
        storage.close()
    }

    private func checkOpen() throws(RemoteError) {
        if isClosed { throw RemoteError(.unavailable, "The account was closed.") }
    }

    private func checkPlace() async throws(RemoteError) {
        try checkOpen()
        try await account.checkPlace()
    }

    // MARK: The account

    /// Checks that the place can be used and finds its account.
    public func open(creatingAccount createsAccount: Bool) async throws(RemoteError) -> RemoteAccount {
        try checkOpen()
        try await account.open(creatingAccount: createsAccount)
        let hasHeads = try await heads.checkFormat()
        return account.remoteAccount(of: account.identifiers, isNew: account.identifiers.count == 1 && !hasHeads)
    }

    /// Puts an account's marker into the place where it isn't there.
    public func restore(_ identifier: String) async throws(RemoteError) -> RemoteAccount {
        account.doubt()
        account.markers.forget()
        try checkOpen()
        return try await account.restore(identifier)
    }

    /// The account as it is there now, for a pass.
    package func presentAccount() async throws(RemoteError) -> RemoteAccount {
        try await checkPlace()
        return try await account.look()
    }

    /// What a check says of the encrypted account that is here: since when it is encrypted, as its marker says.
    package func encryptedAccount() async -> String {
        let since = await account.encryptedSince().map { ", since \(DayText.utc($0))" } ?? ""
        return "An encrypted account is here\(since). Its recovery phrase opens it."
    }

    // MARK: Pulling

    /// Every so many pulls nothing is taken for granted: not the versions that a storage gives, nor the markers.
    private var isThorough: Bool { pulls % 20 == 1 }

    /// Looks what is new since a cursor.
    public func pull(
        after cursor: [UInt8]?, as origin: Origin, published count: UInt64
    ) async throws(RemoteError) -> any RemotePull {
        pulls += 1
        account.markers.isThorough = isThorough
        heads.forgetListed()
        forgetNews()
        if isThorough || own.haveOthersWritten { segments.forgetNames() }
        try await checkPlace()
        let cursor = cursor.map(BlobCursor.init(decoding:))
        if let cursor {
            garbage.resume(cursor.observations)
        } else {
            joined = JoinedNews()
            own.forgetJoined()
        }
        let (account, found) = try await look(as: origin)
        let publication = try await own.publication(
            in: found, as: origin, published: count, last: cursor?.own, isThorough: isThorough)
        if own.readsAnew { joined.forgetStates() }
        var known = own.readsAnew ? [] : cursor?.heads ?? []
        // What was published before everything was to be downloaded anew is not here any more.
        if cursor != nil, !own.readsAnew {
            known.formUnion(joined.heads)
            if let published = own.published, published.isTrusted { known.insert(published.digest) }
        }
        let isOutdated = publication == .asPublished && own.isOutdated(beside: found.heads, known)
        return BlobPull(
            backend: self, account: account, found: found, known: known, joined: joined,
            ownPublication: isOutdated ? .outdated : publication, formerOwn: cursor?.own)
    }

    /// Looks at the heads, and at the markers where these may have become others: an account that is as it was costs
    /// one listing.
    private func look(as origin: Origin) async throws(RemoteError) -> (RemoteAccount, FoundHeads) {
        let (known, before) = (isThorough ? nil : account.seen, heads.found)
        var present: RemoteAccount
        if let known { present = known } else { present = try await account.look() }
        var problems = try await heads.read(believing: !isThorough, as: origin)
        let full = [BlobName.markers: account.markers.isFull, BlobName.segments: segments.isFull].filter(\.value)
        for folder in full.keys.sorted() {
            problems.append("The folder \(folder) holds too many files; some were not looked at.")
        }
        if own.note(heads.found, since: before, isThorough: isThorough) { segments.forgetNames() }
        if account.seen == nil || heads.areInDoubt(of: present, since: before, hasAsked: known == nil) {
            let identifiers = account.identifiers
            present = try await account.look()
            // Its parts were not made out yet.
            if account.identifiers != identifiers { return try await look(as: origin) }
        }
        let found = heads.found.values.sorted { ($0.name.utf8.count, $0.name) < ($1.name.utf8.count, $1.name) }
        return (present, FoundHeads(found, of: present, problems: problems))
    }

    /// Reads a part's state, for a pull.
    func readState(of part: Head.Part, store: String) async throws(RemoteError) -> PartContent {
        try await parts.readState(of: part, store: store)
    }

    /// What was read is joined, or not needed any more.
    func forgetNews() { parts.forgetNews() }

    /// Remembers what was joined, and completes the cursor.
    /// - Parameters:
    ///   - gaps: the digests of heads of which not all was joined.
    ///   - former: what this device published last, as far as the cursor before says.
    func didJoin(_ news: JoinedNews, gaps: Set<Bits128>, former: HeadIdentity?) async -> BlobCursor {
        own.noteJoined()
        joined = news
        let named = Set(heads.found.values.flatMap(\.head.segmentNames)).union(own.segmentNames)
        parts.forget(besides: named)
        segments.forget(besides: named)
        forgetNews()
        garbage.noteHeads()
        await garbage.sweep()
        var cursor = BlobCursor()
        cursor.heads = news.heads.subtracting(gaps)
        // Nobody would hear of these any more after a restart: the next process reads them again.
        for found in heads.found.values
        where found.head.parts.contains(where: { news.corrupt[$0]?[$1.digest] != nil }) {
            cursor.heads.remove(found.digest)
        }
        cursor.own = own.identity ?? former
        cursor.observations = garbage.observations
        return cursor
    }

    // MARK: Pushing

    /// Begins to upload this device's state. Nothing that the look before has seen is asked for again
    /// (docs/decisions/0018).
    public func push(_ publication: Publication) async throws(RemoteError) -> any RemotePush {
        if account.protection.move != nil { throw RemoteError.moving }
        let (present, names, there) = try await present(under: publication.origin)
        let wrapping = try account.wrapping
        guard present.isNamed(publication.account), let identifier = Bits128(publication.account) else {
            throw RemoteError(.reset, "There is another account here than the one that is signed in.")
        }
        if let there, present.isNamed(there.head.account.description),
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

    /// Whose place it is, the names of heads in it and the one under an origin's name: as the look has seen them that
    /// this push follows, or else as they are now.
    private func present(
        under origin: Origin
    ) async throws(RemoteError) -> (account: RemoteAccount, names: Set<String>, own: FoundHead?) {
        try await checkPlace()
        if let names = heads.listed, let seen = account.seen {
            heads.forgetListed()
            return (seen, names, heads.found[origin.description])
        }
        segments.forgetNames()
        let present = try await account.look()
        return (present, try await heads.names(), try await heads.read(of: origin))
    }

    /// What this device published last: what it knows it did, or else what looks like it.
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

    /// The way of cutting a state that all who hold it prefer, for a push.
    func sharedPart(
        _ digest: Bits128, _ content: StateContent?, of store: String, own: Head.Part?, among candidates: [Head.Part]
    ) async throws(RemoteError) -> Head.Part? {
        try await cutter.shared(digest, content, of: store, own: own, among: candidates)
    }

    /// What a state is cut over, for a push.
    func base(
        for digests: StateDigests, of store: String, among candidates: [Head.Part]
    ) async throws(RemoteError) -> (choice: BaseChoice, vector: VersionVector) {
        try await cutter.base(for: digests, of: store, among: candidates)
    }

    /// Sees to it that what a draft has written is there.
    func ensure(_ draft: PartDraft<Wrapping>, present: Set<Bits128>) async throws(RemoteError) {
        try await writer.ensure(draft, present: present)
    }

    /// What this device published last, if that is known.
    var published: PublishedHead? { own.published }

    /// Writes a head under this device's own name.
    func publish(
        _ head: Head, unlikeLength length: Int?, present: Set<Bits128>
    ) async throws(RemoteError) {
        try checkOpen()
        let (former, now) = try await own.publish(head, unlikeLength: length, present: present)
        await garbage.noteReplaced(former, by: now)
    }

    /// Removes the head of an origin under which this device writes no more, once everything in it is joined here.
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
        try await garbage.collect(request, of: present, joined: joined.heads)
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

    package func awaitOtherKey() async throws {
        try checkOpen()
        try await account.awaitOtherKey()
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
            return [BackendCheck(step: "key", isPassed: false, detail: error.message)]
        }
    }

    package func removeFormerForms() async throws {
        guard let former = account.former else { return }
        try await checkPlace()
        try await account.confirmFormerNames()
        try await FormerFormRemoval(storage: storage, former: former).run()
        segments.forgetNames()
        account.noteFormerRemoved()
    }
}
