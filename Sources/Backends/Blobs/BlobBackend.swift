// SPDX-License-Identifier: Apache-2.0

// The backend of everything that stores blobs: a head for each device, segments that heads share, and a marker
// that says whose they are.
//
// Nothing is decided from what a storage says about a blob, or from a blob that is not there: only from content.
// What is kept in memory between calls saves reading and writing, with one exception: which heads this process
// wrote. With that it notices a clone, a process that writes under the same origin.

package import BackendSupport
public import Replication

/// A backend on a storage of blobs.
public actor BlobBackend<Storage: BlobStorage>: RemoteBackend {
    /// Where the blobs are.
    nonisolated let storage: Storage
    let environment: Environment
    private let executor: any SerialExecutor
    /// All heads together may take so many bytes: they are held in memory, and whoever may write to the place may put
    /// heads there that are small as files and large when they are decoded.
    let mostHeadBytes: Int
    /// What all accounts hold in memory has a bound, too.
    let share: RemoteBudget.Share

    /// Heads and segments are decoded and hashed away from whoever calls, which is the thread that answers everybody.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    private var isClosed = false
    /// The identifiers of the account that was opened.
    private(set) var accountIdentifiers: Set<Bits128> = []
    var memory = BlobMemory()

    /// A backend on a storage.
    /// - Parameter environment: the time in markers, and random identifiers.
    public init(storage: Storage, environment: Environment) {
        self.init(storage: storage, environment: environment, executor: ThreadExecutor(), budget: .shared)
    }

    /// A backend that runs elsewhere: for a simulation.
    package init(
        storage: Storage, environment: Environment, executor: any SerialExecutor, mostHeadBytes: Int = 64 << 20,
        budget: RemoteBudget = RemoteBudget()
    ) {
        (self.storage, self.environment, self.executor) = (storage, environment, executor)
        (self.mostHeadBytes, share) = (mostHeadBytes, budget.share())
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

    // MARK: The account

    /// Checks that the place can be used and finds its account.
    public func open(creatingAccount createsAccount: Bool) async throws(RemoteError) -> RemoteAccount {
        try checkOpen()
        try await storage.check(makingPlace: createsAccount)
        var markers = try await readMarkers()
        if markers.isEmpty {
            guard createsAccount else { throw RemoteError(.noAccount, "There is no account here yet.") }
            let marker = AccountMarker(
                identifier: Bits128(high: environment.random(), low: environment.random()),
                time: environment.time()
            )
            try await storage.create(BlobName.marker(marker.identifier), marker.encoded())
            markers = try await readMarkers().union([marker.identifier])
        }
        accountIdentifiers = markers
        let heads = try await storage.list(BlobName.heads).filter { Origin($0.name) != nil }
        try await checkFormat(of: heads)
        return Self.account(markers, isNew: markers.count == 1 && heads.isEmpty)
    }

    /// Refuses an account that a newer version of this service publishes in, before anything is changed for it.
    private func checkFormat(of heads: [BlobListing]) async throws(RemoteError) {
        for listing in heads.prefix(Self.mostHeads) {
            let content = try await storage.get("\(BlobName.heads)/\(listing.name)", limit: Head.limit, unless: nil)
            guard case .content(let bytes, _) = content else { continue }
            // What can't be read for another reason is named by the first pull.
            do throws(BlobFlaw) { _ = try WrittenHead(decoding: bytes) } catch {
                if error == .tooNew { throw RemoteError.tooNew }
            }
        }
    }

    /// Puts an account's marker into the place where it isn't there.
    public func restore(_ account: String) async throws(RemoteError) -> RemoteAccount {
        (memory.account, memory.goodMarkers) = (nil, [])
        try checkOpen()
        guard let identifier = Bits128(account) else {
            throw RemoteError(.unsupported, "The account has an identifier that no folder can have.")
        }
        try await storage.check(makingPlace: true)
        if try await !readMarkers().contains(identifier) {
            let marker = AccountMarker(identifier: identifier, time: environment.time())
            do { try await storage.create(BlobName.marker(identifier), marker.encoded()) } catch {
                // Another device may have done the same.
                guard try await readMarkers().contains(identifier) else { throw error }
            }
        }
        accountIdentifiers = try await readMarkers().union([identifier])
        return Self.account(accountIdentifiers)
    }

    /// The account as it is there now, for a pass.
    func presentAccount() async throws(RemoteError) -> RemoteAccount {
        try await checkPlace()
        return try await markedAccount()
    }

    /// Looks whether the place is still there.
    func checkPlace() async throws(RemoteError) {
        try checkOpen()
        do { try await storage.check(makingPlace: false) } catch {
            // It was there when the account was opened: rather a drive that is not mounted than a wish to delete.
            throw error.code == .noAccount ? RemoteError(.unavailable, error.message) : error
        }
    }

    /// The account that the markers say is here.
    func markedAccount() async throws(RemoteError) -> RemoteAccount {
        memory.account = nil
        let markers = try await readMarkers(expecting: accountIdentifiers)
        if markers.isEmpty { throw RemoteError(.reset, "The account that was here is gone.") }
        if !accountIdentifiers.isEmpty, accountIdentifiers.isDisjoint(with: markers) {
            throw RemoteError(.reset, "There is another account here than before.")
        }
        accountIdentifiers.formUnion(markers)
        let account = Self.account(markers)
        memory.account = account
        return account
    }

    /// The identifiers of markers that are whole.
    /// - Parameter expected: identifiers of which a marker that is damaged is not one that is gone.
    private func readMarkers(expecting expected: Set<Bits128> = []) async throws(RemoteError) -> Set<Bits128> {
        var (markers, damaged): (Set<Bits128>, Set<Bits128>) = ([], [])
        let (listings, isAll) = try await list(BlobName.markers)
        // What is not listed is not lost where too much is.
        for identifier in Set(listings.compactMap { Bits128($0.name) }).union(isAll ? [] : expected) {
            if memory.goodMarkers.contains(identifier), !isThorough {
                markers.insert(identifier)
                continue
            }
            let content = try await storage.get(
                BlobName.marker(identifier),
                limit: AccountMarker.limit,
                unless: nil
            )
            guard case .content(let bytes, _) = content else { continue }
            do throws(BlobFlaw) {
                let marker = try AccountMarker(decoding: bytes)
                if marker.identifier == identifier { markers.insert(identifier) }
                memory.goodMarkers = markers
            } catch .tooNew {
                throw RemoteError.tooNew
            } catch .tooOld {
                throw RemoteError(
                    .unsupported, "The account was made by a version from before the first release; make a new one.")
            } catch {
                damaged.insert(identifier)
            }
        }
        let isGone = markers.isEmpty || (!expected.isEmpty && markers.isDisjoint(with: expected))
        if isGone, !damaged.isEmpty, expected.isEmpty || !damaged.isDisjoint(with: expected) {
            throw RemoteError(.damaged, "The file that says which account is here is damaged or has not arrived whole.")
        }
        return markers
    }

    private static func account(_ markers: Set<Bits128>, isNew: Bool = false) -> RemoteAccount {
        let identifiers = markers.sorted()
        return RemoteAccount(
            identifier: identifiers.first?.description ?? "",
            aliases: Set(identifiers.dropFirst().map(\.description)),
            isNew: isNew
        )
    }

    func checkOpen() throws(RemoteError) {
        if isClosed { throw RemoteError(.unavailable, "The account was closed.") }
    }
}
