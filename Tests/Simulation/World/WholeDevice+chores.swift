// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import PropertyList
internal import StoreEngine
internal import SyncEngine

extension WholeDevice {
    func perform(_ chore: Chore, store: Int, duration: UInt64) {
        guard let process else { return }
        do throws(EngineError) {
            switch chore {
            case .pause: setPaused(!process.sync.isPaused)
            case .keepStoreHere: try synchronize(store, !process.store(store).isSynchronized)
            case .forgetStore: try forget(store)
            case .removeStore:
                for key in values(of: store).keys.sorted() {
                    write(store: store, key: key, number: world.nextNumber(), removes: true)
                }
            case .emptyRemote:
                guard let place else { return }
                world.isEmptied = true
                world.places[place].empty()
            case .forgetDevice:
                let other = "device\((number + 1) % world.devices.count)"
                if try process.sync.forget(device: other) { world.hasForgottenDevice = true }
            case .fullDisk:
                Self.withoutRoom {
                    write(store: store, key: 0, number: world.nextNumber(), removes: false, isRoomless: true)
                }
            case .failingSync: files.failsToSync(until: world.timeline.now + duration)
            case .fill: try fill(store, bytes: duration % 2 == 0)
            case .grow: try grow(store, by: 1100 + Int(duration % 3000))
            case .repeatedListings, .olderListings: break
            }
        } catch {
            if case .quota = error { return }
            world.report("device \(number), \(chore): \(error)")
        }
    }

    func isSynchronized(_ store: Int) -> Bool { process?.store(store).isSynchronized ?? false }

    func hasArrived(_ store: Int) -> Bool {
        let awaited = try? process?.database.progress.storesAwaitingDownload()
        return awaited?.contains(Names.stores[store]) == false
    }

    func endChores() {
        files.failsToSync(until: 0)
        if process?.sync.isPaused == true { setPaused(false) }
        for store in 0..<world.conditions.stores where process?.store(store).isSynchronized == false {
            do { try synchronize(store, true) } catch { world.report("device \(number): \(error)") }
        }
    }

    private func setPaused(_ isPaused: Bool) {
        guard isSignedIn else { return }
        notePause(isPaused)
        process?.sync.setPaused(isPaused)
    }

    private func synchronize(_ store: Int, _ isSynchronized: Bool) throws(EngineError) {
        guard let process else { return }
        try process.database.synchronize(store: Names.stores[store], isSynchronized)
        process.noteAccount()
        if isSynchronized {
            process.sync.noteHint()
            process.sync.noteLocalChange()
        }
    }

    /// Forgets a store as the service does while an app has it open.
    private func forget(_ store: Int) throws(EngineError) {
        guard let process, !isMoving else { return }
        let (before, place) = (world.states(self), place)
        guard try process.database.forget(store: Names.stores[store], whileInUse: true) != nil else { return }
        process.noteForgetting()
        process.noteOwnWrite(store)
        process.noteAccount()
        process.sync.noteHint()
        world.excuse(
            self, for: .removedStore, before: before, place: place, after: world.states(self),
            losesPlace: world.mayLosePublished)
    }

    private func fill(_ index: Int, bytes: Bool) throws(EngineError) {
        let (count, size) = bytes ? (2, 400_000) : (900, 8)
        let values = (0..<count).map {
            (Key(unchecked: "fill\($0)"), Value.data([UInt8](repeating: UInt8(number), count: size)))
        }
        try set(values, in: index)
    }

    private func grow(_ index: Int, by size: Int) throws(EngineError) {
        let content = UInt8(truncatingIfNeeded: world.nextNumber())
        try set([(Key(unchecked: "large"), .data([UInt8](repeating: content, count: size)))], in: index)
    }

    private func set(_ values: [(Key, Value)], in index: Int) throws(EngineError) {
        guard let process else { return }
        try process.store(index).stage(setting: values, removing: [])
        try process.database.commit()
        process.noteOwnWrite(index)
    }

    /// Runs a closure while no file can be written to, as on a full or broken disk.
    private static func withoutRoom(_ body: () -> Void) {
        signal(SIGXFSZ, SIG_IGN)
        var former = rlimit()
        getrlimit(__rlimit_resource_t(1), &former)
        var none = rlimit(rlim_cur: 0, rlim_max: former.rlim_max)
        setrlimit(__rlimit_resource_t(1), &none)
        body()
        setrlimit(__rlimit_resource_t(1), &former)
    }
}
