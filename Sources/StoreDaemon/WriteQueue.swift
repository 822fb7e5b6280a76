// SPDX-License-Identifier: Apache-2.0

// Writes that arrive together are committed together.
//
// A write is staged when its call is read, and answered after its commit. The connection commits when it has read all
// waiting messages, and a read of a store commits first. So no reader sees a write that could still be lost, and no
// write waits for one that hasn't arrived.

internal import PropertyList
internal import Replication
internal import SDBus
internal import StoreEngine
internal import SyncEngine

/// The writes that wait for their commit.
@BusActor
final class WriteQueue {
    private struct Waiting {
        let call: MethodCall
        let client: Client
        let store: UserStore
        let generation: UInt64
        let keys: [Key]
    }

    private var waiting: [Waiting] = []
    /// Called with the error and the user if a user's writes are refused.
    var onRefusal: @BusActor (BusError, UInt32) -> Void = { _, _ in }

    var isEmpty: Bool { waiting.isEmpty }

    /// Stages a write, and answers its call after the commit.
    func add(_ call: MethodCall, _ client: Client, _ store: UserStore, stage: (Store) throws -> [Key]) throws {
        do {
            let keys = try stage(store.store)
            waiting.append(
                Waiting(call: call, client: client, store: store, generation: store.store.generation, keys: keys))
        } catch EngineError.quota(let violation) {
            commit()
            let refusal = BusError(mapping: EngineError.quota(violation))
            onRefusal(refusal, store.user.uid)
            call.fail(refusal)
            store.notify(.quotaViolationChange, keys: violation.keys, info: violation.info)
        }
    }

    /// Commits the waiting writes, answers their calls and notifies subscribers.
    func commit() {
        var rest = waiting
        waiting = []
        while let user = rest.first?.store.user {
            // This is usually empty, and then nothing is copied.
            var others: [Waiting] = []
            for write in rest where write.store.user !== user { others.append(write) }
            if !others.isEmpty { rest.removeAll { $0.store.user !== user } }
            commit(rest, of: user)
            rest = others
        }
    }

    private func commit(_ writes: [Waiting], of user: User) {
        if let failure = commit(user) { return fail(writes, failure) }
        // A reader's call may have caused the commit.
        let began = WorkTime()
        defer { user.noteWork(since: began) }
        for write in writes { answer(write) }
        for write in writes where !write.keys.isEmpty {
            write.store.notify(.localChange, keys: write.keys, except: write.client)
            if write.store.layer == nil { user.account.sync.noteLocalChange() }
        }
    }

    /// Fails a user's waiting writes, because a commit that something else needed took them along and has failed.
    func fail(of uid: UInt32, _ failure: EngineError) {
        let lost = waiting.filter { $0.store.user.uid == uid }
        waiting.removeAll { $0.store.user.uid == uid }
        fail(lost, failure)
    }

    private func fail(_ writes: [Waiting], _ failure: any Error) {
        guard let first = writes.first else { return }
        onRefusal(BusError(mapping: failure), first.store.user.uid)
        for write in writes {
            write.store.forgetWeight()
            write.call.fail(BusError(mapping: failure, for: write.client))
        }
    }

    private func commit(_ user: User) -> (any Error)? {
        do {
            try user.database.commit()
            return nil
        } catch EngineError.corrupt(let reason) {
            try? user.recovery.replaceDatabase(reason)
            return EngineError.corrupt(reason)
        } catch {
            return error
        }
    }

    private func answer(_ write: Waiting) {
        // The caller may have disconnected.
        try? write.call.reply { try $0.append(write.generation) }
    }
}

extension QuotaViolation {
    /// The entries of a signal's info.
    var info: [String: Value] {
        [
            "limit": .string(Text(limit.wireName)), "needed": .integer(Int64(needed)),
            "available": .integer(Int64(available)),
        ]
    }
}
