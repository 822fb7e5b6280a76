// SPDX-License-Identifier: Apache-2.0

// The backend of everything that stores blobs: a head for each device, segments that heads share, and a marker
// that says whose they are.
//
// Nothing is decided from what a storage says about a blob, or from a blob that is not there: only from content.
// What is kept in memory between calls saves reading and writing, with one exception: which heads this process
// wrote. With that it notices a clone, a process that writes under the same origin.

package import BackendSupport
public import Replication
package import Sealing

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
    var accountIdentifiers: Set<Bits128> = []
    /// What is known of the account's encryption. A phrase becomes a key when the account is opened.
    var protection: Protection
    var memory = BlobMemory()

    /// A backend on a storage.
    /// - Parameter environment: the time in markers, and random identifiers.
    public init(storage: Storage, environment: Environment) {
        self.init(storage: storage, environment: environment, executor: ThreadExecutor(), budget: .shared)
    }

    /// A backend that runs elsewhere: for a simulation.
    package init(
        storage: Storage, environment: Environment, executor: any SerialExecutor, mostHeadBytes: Int = 64 << 20,
        budget: RemoteBudget = RemoteBudget(), protection: Protection = .none
    ) {
        (self.storage, self.environment, self.executor) = (storage, environment, executor)
        (self.mostHeadBytes, self.protection, share) = (mostHeadBytes, protection, budget.share())
    }

    /// A backend on an account of which something is known.
    package init(storage: Storage, environment: Environment, protection: Protection) {
        self.init(
            storage: storage, environment: environment, executor: ThreadExecutor(), budget: .shared,
            protection: protection)
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

    func checkOpen() throws(RemoteError) {
        if isClosed { throw RemoteError(.unavailable, "The account was closed.") }
    }

    /// How this account's blobs are written and read.
    var wrapping: Wrapping {
        get throws(RemoteError) {
            guard let wrapping = protection.wrapping else { throw RemoteError.keyNeeded }
            return wrapping
        }
    }
}

extension BlobBackend: KeyHolding {
    package var heldKey: HeldKey? { protection.held }
}

extension RemoteError {
    static let moving = RemoteError(.unavailable, "The account is moving to its key; that is finished first.")
    package static let keyNeeded = RemoteError(
        .keyNeeded, "The account is encrypted, and this device does not have its key. Enter its recovery phrase.")
}
