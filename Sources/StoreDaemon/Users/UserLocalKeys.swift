// SPDX-License-Identifier: Apache-2.0

internal import AppManifest
internal import Logging
internal import PropertyList
internal import SDBus
internal import StoreEngine
internal import SyncEngine

/// The keys of a user's stores that never leave the device: those that present manifests declare, and those that former
/// ones did.
///
/// Keys are recorded before they count. If that fails, or if they can't be applied to a store in use, it is tried again,
/// and such keys can't be written meanwhile.
@BusActor
final class UserLocalKeys {
    /// The user; `nil` once the data is closed.
    weak var user: User?
    private let uid: UInt32
    private let service: ServiceContext
    private var remembered: RememberedLocalKeys
    /// Whether another thread writes the record.
    private var isWriting = false
    /// Why changed manifests are not recorded, or not applied to a store in use; `nil` if they are.
    private var problem: (any Error)?
    private var pace = Pace()
    /// Tries again if no call does.
    private var timer: EventSource?

    init(in directory: UserDirectory, service: ServiceContext) throws(EngineError) {
        uid = directory.uid
        self.service = service
        remembered = try Self.read(in: directory, service.logger)
    }

    private static func read(in directory: UserDirectory, _ logger: Logger) throws(EngineError) -> RememberedLocalKeys {
        var remembered = RememberedLocalKeys(of: directory)
        remembered.setAsideDamaged(logger)
        if let failure = remembered.failure { throw failure }
        return remembered
    }

    /// Reads the record again, because the directory may have been replaced.
    func readAgain(in directory: UserDirectory) throws(EngineError) {
        remembered = try Self.read(in: directory, service.logger)
    }

    /// Ends what is under way.
    func close() { (user, timer) = (nil, nil) }

    private func manifests(of store: String) -> [Manifest] { user?.manifests.manifests(of: store) ?? [] }

    /// Returns the keys of a store that never leave the device.
    func keys(of store: String) -> LocalKeys {
        let declaring = manifests(of: store)
        return LocalKeys(declaring.flatMap(\.localKeys) + remembered.patterns(of: store, besides: declaring))
    }

    // MARK: Manifests

    /// Applies changed manifests.
    func renew() {
        guard let user else { return }
        // What waits is announced before what follows from the manifests.
        service.writes.commit()
        (problem, timer) = (nil, nil)
        for store in user.storesInUse { note(store.identifier) }
        writeAtOnce()
        // If a manifest is gone, its keys stay on the device.
        for store in user.storesInUse where user.manifests.hasManifest(store.identifier) {
            do {
                let keys = try store.store.replaceLocalKeys(keys(of: store.identifier))
                let released = try store.store.releaseLocalValues()
                let changed = Set(keys).union(released)
                // No program of this device wrote them, so all subscribers are told.
                if !changed.isEmpty { store.notify(.serverChange, keys: changed.sorted()) }
            } catch {
                noteProblem(error, of: store.identifier)
            }
        }
    }

    /// Records what manifests say of a store that is about to be loaded.
    func prepare(_ store: String) {
        note(store)
        writeAtOnce()
    }

    /// Applies manifests to a store that was just loaded. They may have changed while it was not in use.
    func apply(to store: Store) {
        guard user?.manifests.hasManifest(store.identifier) == true else { return }
        do { _ = try store.releaseLocalValues() } catch { noteProblem(error, of: store.identifier) }
    }

    /// Records what a manifest says of a store, before the manifest counts. Returns when that is on the disk.
    func note(_ manifest: Manifest, of store: String) async {
        note([manifest], of: store)
        await write()
    }

    private func note(_ store: String) { note(manifests(of: store), of: store) }

    private func note(_ manifests: [Manifest], of store: String) {
        if remembered.note(manifests, of: store) { return }
        service.logProblem("There are too many local keys of \(store) to be recorded.", of: uid)
    }

    /// Forgets a store, which is removed with its local values.
    func forget(_ store: String) {
        remembered.forget(store, besides: manifests(of: store))
        // Nobody has to wait: until it is written, the keys are kept here for longer than necessary.
        EventLoop.task { [self] in try? await user?.account.files.inTurn { [self] in await write() } }
    }

    /// Keeps local what only this device has of a store, if the record was damaged.
    func keepValues(of store: Store) throws(EngineError) {
        guard !store.isLayer, remembered.isIncomplete else { return }
        let identifier = store.identifier
        let known = keys(of: identifier)
        let missing = store.localValues.filter { !known.contains($0) }
        if missing.isEmpty { return }
        let former = remembered
        guard remembered.keep(missing, of: identifier), writeAtOnce() else {
            remembered = former
            throw .storage("the local keys of \(identifier) can't be recorded")
        }
        _ = try store.replaceLocalKeys(keys(of: identifier))
    }

    // MARK: Failures

    /// Has changed manifests applied again, because the disk may have been full.
    /// - Parameter store: the store to which they can't be applied; `nil` if they can't be recorded.
    private func noteProblem(_ error: any Error, of store: String? = nil) {
        let subject = store.map { "The local keys of \($0) can't be applied: " } ?? ""
        // Each call tries again.
        service.logProblem("\(subject)\(BusError(mapping: error).message)", of: uid)
        problem = error
        timer = EventLoop.shared.after(.seconds(60)) { [unowned self] in renew() }
    }

    /// Tries again what has failed.
    func retry() {
        if problem != nil, pace.isDue { pace.run(renew) }
    }

    /// Throws if one of these keys is to stay on the device, or was to before, while local keys can't be recorded or
    /// applied. Its value would be uploaded, or lost, or come back.
    func check(_ store: Store, among keys: some Sequence<Key>) throws {
        retry()
        guard let problem else { return }
        let wanted = self.keys(of: store.identifier)
        let isAffected = keys.contains {
            wanted.contains($0) || store.localKeys.contains($0) || store.hasUnreleasedValue(for: $0)
        }
        if isAffected { throw problem }
    }

    // MARK: The record

    /// Writes the record if it has changed. Values of these keys may be acknowledged from now on, and would be uploaded
    /// after a crash if only a manifest that is gone had said that they stay here. Only administrators can cause this again
    /// and again; what programs can cause is written on another thread.
    /// - Returns: whether the file has everything.
    @discardableResult
    private func writeAtOnce() -> Bool {
        // Two threads must not write one file.
        if isWriting { return false }
        do { try remembered.takeUnsaved()?.write() } catch { return noteUnwritten(error) }
        return true
    }

    /// Does the same on another thread, in turn with the other files of the user.
    private func write() async {
        isWriting = true
        defer { isWriting = false }
        // The directory of data that was closed may be another user's.
        while let user, let unsaved = remembered.takeUnsaved() {
            do { try await user.account.files.waiting(unsaved.write) } catch {
                noteUnwritten(error)
                return
            }
        }
    }

    @discardableResult
    private func noteUnwritten(_ error: any Error) -> Bool {
        remembered.noteUnsaved()
        noteProblem(error)
        return false
    }
}
