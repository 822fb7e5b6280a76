// SPDX-License-Identifier: Apache-2.0

// A manifest or an administrator makes keys roam: they live in the app's synced store. They are a layer above the
// domain's own values. Writes to them go to the store. Once it has taken them, the domain's own values are removed, so
// that a removal on another device shows.

internal import Foundation
internal import ManagedDefaults
internal import PropertyList
internal import SDBus
internal import StoreBus
internal import Synchronization
internal import UbiquitousStore

/// The keys of the app's own domain that roam, and their store.
struct Roaming: Sendable {
    /// The store's identifier; `nil` if no keys roam.
    var store: String?
    /// The keys that roam.
    var keys: KeyPatterns
    /// The store's copy; `nil` until a key roams.
    var mirror: StoreMirror?
    /// What an outbox holds, which is shown until the store's values arrive.
    private(set) var preloaded: Changes = [:]
    /// When that was set, in microseconds since 1970.
    var shownTimes: [Text: Int64] = [:]
    /// Whether the store's values have arrived.
    var isLoaded = false
    /// The keys whose own values in the domain go once the store has taken what was written to it.
    var superseded: Set<Text> = []
    /// When this process has set keys last, in microseconds since 1970.
    var times: [Text: Int64] = [:]

    /// The layer's values.
    var values: [Text: Value] {
        guard let mirror else { return [:] }
        var values = mirror.values
        if !mirror.isLoaded { values.merge(preloaded.compactMapValues { $0 }) { own, _ in own } }
        return values.filter { keys.contains($0.key) }
    }

    /// Shows what an outbox holds for the store, but for keys that this process has set or removed itself.
    mutating func preload(_ writes: [Outbox.Write]) {
        guard let store else { return }
        let shown = writes.filter { $0.store?.string == store && times[$0.key] == nil }
        preloaded = Changes(shown.map { ($0.key, $0.value) }) { $1 }
        shownTimes = Dictionary(shown.map { ($0.key, $0.time) }) { $1 }
    }

    /// Notes that this process has set or removed a key.
    mutating func noteSet(_ key: Text, at now: Int64) {
        preloaded[key] = nil
        times[key] = Outbox.Write.time(now, after: shownTimes[key])
    }

    /// Whether a key is in the store, as far as this process knows.
    func roams(_ key: Text) -> Bool { mirror != nil && keys.contains(key) }

    /// Returns the writes that the service has not acknowledged.
    /// - Parameter time: that of keys of which it isn't known when they were set, in microseconds since 1970.
    func pendingWrites(time: Int64) -> [Outbox.Write] {
        guard let mirror else { return [] }
        let (changes, unanswered, known) = mirror.pending
        return changes.filter { keys.contains($0.key) }.map {
            Outbox.Write(
                key: $0, value: $1, isHost: false, store: Text(mirror.identifier), time: times[$0] ?? time,
                generation: known[$0] ?? 0,
                unanswered: [unanswered[$0]].compactMap { $0 })
        }
    }

    /// Returns the layer's values of some keys.
    func values(of names: [Text]) -> Changes {
        let values = mirror?.values ?? [:]
        return Changes(names.filter(keys.contains).map { ($0, values[$0]) }) { $1 }
    }
}

extension DefaultsState {
    /// Returns the writes that wait where their keys belonged until now, and no longer belong.
    fileprivate func pendingElsewhere(of domain: Text, _ former: Roaming, now keys: KeyPatterns) -> Changes {
        let inStore = former.mirror?.pending.changes.filter {
            former.keys.contains($0.key) && !keys.contains($0.key) && former.times[$0.key] != nil
        }
        guard let layer = layers[.domain(domain)] else { return inStore ?? [:] }
        let (whole, delivered) = (layer.keysOfWhole, delivered[domain] ?? [:])
        let inDomain = layer.pending.filter { key, _ in
            !former.keys.contains(key) && keys.contains(key) && !whole.contains(key)
                && layer.time(key) >= delivered[key] ?? .min
        }
        return (inStore ?? [:]).merging(inDomain) { $1 }
    }
}

extension DefaultsProcess {
    /// Whether this process has set a key in a store later than an outbox's write was made, so that this is not to be
    /// delivered. If the service has this process's value and can tell whether the write knew it, the service decides.
    func hasSet(after write: Outbox.Write, of domain: Text, in store: Text) -> Bool {
        state.withLock { state in
            guard let roaming = state.roaming[domain], let mirror = roaming.mirror,
                mirror.identifier == store.string, let time = roaming.times[write.key], time > write.time
            else { return false }
            let isDecided = write.store == store && write.generation > 0
            return !isDecided || mirror.pending.changes[write.key] != nil
        }
    }

    /// Sets which keys of the app's domain roam, and their store.
    func roam(_ domain: Text, store: String?, keys: KeyPatterns) {
        let (isNew, moved) = change(reason: ChangeReason.managed) { state, update -> (StoreMirror?, Changes) in
            var roaming = state.roaming[domain] ?? Roaming(keys: .none)
            let moved = state.pendingElsewhere(of: domain, roaming, now: keys)
            (roaming.store, roaming.keys) = (store, keys)
            let former = roaming.mirror
            if let store, !keys.isEmpty {
                if former?.identifier != store { roaming.mirror = StoreMirror(identifier: store, bus: bus) }
            } else {
                roaming.mirror = nil
            }
            state.roaming[domain] = roaming
            update.roaming(domain, &state)
            return (former == nil || former?.identifier != store ? roaming.mirror : nil, moved)
        }
        isNew?.follow { [weak self] written in
            self?.storeChanged(domain, written)
        } announced: { [weak self] event in
            self?.announced(domain, event)
        }
        removeSuperseded(domain)
        // What the store can't hold stays in the domain.
        if !moved.isEmpty { _ = try? writeRoaming(domain, moved, isWhole: false, done: nil) }
    }

    /// Sets what this process's manifest declares, unless the service has answered before.
    func declare(_ domain: Text, store: String, keys: KeyPatterns) {
        if state.withLock({ $0.roaming[domain] == nil }) { roam(domain, store: store, keys: keys) }
    }

    /// Returns the store's copy; `nil` if no keys of the domain roam.
    func mirror(_ domain: Text) -> StoreMirror? { state.withLock { $0.roaming[domain]?.mirror } }

    /// Whether the domain has a store, so that some of its keys may roam. In a sandbox only the service knows.
    func mayRoam(_ domain: Text) -> Bool {
        state.withLock { $0.roaming[domain]?.store != nil } || ProcessDefaults.isSandboxed
    }

    /// Waits a while for the store's values.
    func awaitRoaming(_ domain: Text) {
        // A service that has not answered about domains doesn't answer about stores either.
        if EventLoop.shared.isIsolatingCurrentContext() == true || gates.isAbsent || gates.silence.isSilent { return }
        guard let mirror = mirror(domain), !mirror.isLoaded else { return }
        mirror.awaitValues(atMost: Self.readPatience)
        storeChanged(domain, nil)
    }

    // MARK: Writing

    /// Splits changes of a domain into those for the store and the rest, which removes the domain's own values of keys
    /// that are removed. Returns `nil` if nothing goes to the store.
    func split(_ domain: Text, _ changes: Changes) -> (mirror: StoreMirror, roaming: Changes, rest: Changes)? {
        state.withLock { state in
            guard let roaming = state.roaming[domain], let mirror = roaming.mirror else { return nil }
            let own = changes.filter { roaming.keys.contains($0.key) }
            if own.isEmpty { return nil }
            var rest = changes.filter { !roaming.keys.contains($0.key) }
            // The store may refuse values, which the domain then still has, but no removals.
            for (key, value) in own where value == nil && state.mayHave(key, domain) { rest[key] = .some(nil) }
            return (mirror, own, rest)
        }
    }

    /// Notes which of the domain's own values the store is to replace.
    /// - Returns: whether there are any.
    @discardableResult
    private func noteSuperseded(_ domain: Text, by changes: Changes) -> Bool {
        state.withLock { state in
            for (key, value) in changes {
                if value != nil, state.mayHave(key, domain) {
                    state.roaming[domain]?.superseded.insert(key)
                } else {
                    state.roaming[domain]?.superseded.remove(key)
                }
            }
            return state.roaming[domain].map { !$0.superseded.isDisjoint(with: changes.keys) } ?? false
        }
    }

    /// Removes the domain's own values of which the store has others now. Those of a refused write stay.
    func removeSuperseded(_ domain: Text) {
        let removed = state.withLock { state -> Changes in
            guard let roaming = state.roaming[domain], let mirror = roaming.mirror, mirror.isLoaded else { return [:] }
            let (pending, values) = (mirror.pending.changes, mirror.values)
            let settled = roaming.superseded.filter { pending[$0] == nil }
            state.roaming[domain]?.superseded.subtract(settled)
            let gone = settled.filter {
                roaming.keys.contains($0) && values[$0] != nil && state.mayHave($0, domain)
            }
            return Changes(gone.map { ($0, nil) }) { $1 }
        }
        if !removed.isEmpty { write(.domain(domain), removed) }
    }

    /// Removes the domains' own values that the store has replaced, and waits for none.
    func removeSuperseded() {
        for domain in state.withLock({ $0.roaming.filter { !$0.value.superseded.isEmpty }.keys }) {
            removeSuperseded(domain)
        }
    }

    /// Changes a domain: keys that roam in the store, and others in the domain's layer.
    ///
    /// - Returns: whether a stored value has changed.
    /// - Throws: ``UbiquitousStoreError`` for what the store can't hold; nothing has changed then.
    func writeRoaming(
        _ domain: Text, _ changes: Changes, isWhole: Bool, done: (@Sendable ((any Error)?) -> Void)?
    ) throws -> Bool {
        guard let (mirror, roaming, rest) = split(domain, changes) else {
            return write(.domain(domain), changes, isWhole: isWhole, done: done)
        }
        ExitWork.settlement.becomeDue()
        let before = mirror.values
        let isNews = roaming.contains { before[$0.key] != $0.value }
        guard let done else {
            try mirror.write(roaming)
            let supersedes = noteSuperseded(domain, by: roaming)
            tellIfSignedOut(mirror)
            EventLoop.task { [link] in link.fillOutboxesLater() }
            if supersedes {
                Task { [weak self] in
                    await mirror.settle()
                    self?.removeSuperseded(domain)
                }
            }
            return (rest.isEmpty ? false : write(.domain(domain), rest, isWhole: isWhole)) || isNews
        }
        Task { [self] in
            do {
                try await mirror.writeAndWait(roaming)
                noteSuperseded(domain, by: roaming)
                removeSuperseded(domain)
                if rest.isEmpty { done(nil) } else { write(.domain(domain), rest, isWhole: isWhole, done: done) }
            } catch {
                done(error)
            }
        }
        return isNews
    }

    /// Posts, once per process, that settings stay on this device, if the user isn't signed in.
    private func tellIfSignedOut(_ mirror: StoreMirror) {
        guard
            state.withLock({ state in
                defer { state.hasAskedForAccount = true }
                return !state.hasAskedForAccount
            })
        else { return }
        Task {
            guard await mirror.isSignedOut() == true else { return }
            Self.queue.async { UserDefaults.post(UserDefaults.noCloudAccountNotification) }
        }
    }

    // MARK: Events of the store

    /// Takes over changes of the store's copy.
    ///
    /// - Parameter written: the keys that this process wrote; `nil` if the service has sent the change.
    private func storeChanged(_ domain: Text, _ written: [Text]?) {
        let reason = written == nil ? ChangeReason.local : ChangeReason.own
        change(reason: reason) { state, update in
            // The store doesn't announce its first values. Other changes by others are announced, with their reason.
            let isFirst = state.roaming[domain]?.isLoaded == false
            for key in written ?? [] {
                state.roaming[domain]?.noteSet(key, at: Self.now)
            }
            let isLoaded = state.roaming[domain]?.mirror?.isLoaded == true
            if isLoaded { state.roaming[domain]?.shownTimes = [:] }
            state.roaming[domain]?.isLoaded = isLoaded
            update.roaming(domain, &state, written, isTold: written != nil || isFirst)
        }
        if written == nil {
            updateOutbox(domain)
            removeSuperseded(domain)
        }
    }

    private func announced(_ domain: Text, _ event: StoreMirror.Event) {
        if let error = event.error {
            logDefaults(event.keys, "was reverted, because the service rejected it: \(error)")
        }
        let reason = event.error == nil ? event.reason : ChangeReason.quotaViolation
        change(reason: reason, error: event.error) { state, update in
            update.announce(event.keys, isRefusal: event.error != nil, of: domain, &state)
        }
        if event.error?.code == .quotaExceeded { UserDefaults.postSizeLimitExceeded() }
        // Signing in ends with the first download, or switches from another account.
        if [ChangeReason.account, ChangeReason.initialSync].contains(event.reason) {
            UserDefaults.post(UserDefaults.didChangeCloudAccountsNotification)
        }
        if event.reason == ChangeReason.initialSync {
            UserDefaults.post(UserDefaults.completedInitialCloudSyncNotification)
        }
    }
}
