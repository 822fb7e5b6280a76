// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import SDBus

/// This process's watchers of the account, on a store's connection.
@BusActor
final class AccountWatch {
    private var watchers: [UUID: AsyncStream<UbiquitousStore.AccountState>.Continuation] = [:]
    private var account: AccountObject?
    private var match: Slot?
    /// The number of services found and lost. What belongs to an earlier one is discarded.
    private var attempt = 0
    /// What is reported since the service was lost.
    private var loss: UbiquitousStore.AccountState?

    nonisolated init() {}

    /// Adds a watcher, and reports the present state to it if it is known.
    func add(_ watcher: UUID, _ continuation: AsyncStream<UbiquitousStore.AccountState>.Continuation) async {
        watchers[watcher] = continuation
        if let loss {
            continuation.yield(loss)
        } else if account != nil {
            await tell()
        }
    }

    /// Removes a watcher.
    func remove(_ watcher: UUID) {
        watchers[watcher] = nil
        guard watchers.isEmpty, let account else { return }
        (self.account, match) = (nil, nil)
        EventLoop.task { _ = try? await account.unsubscribe() }
    }

    /// Subscribes to a service that has been found, if there are watchers.
    func follow(_ connection: ServiceConnection) async {
        loss = nil
        attempt += 1
        let attempt = attempt
        if watchers.isEmpty { return }
        let account = connection.account()
        do {
            let match = try await account.onChange { [weak self] _ in EventLoop.task { await self?.tell() } }
            try await account.subscribe()
            guard attempt == self.attempt else { return }
            (self.account, self.match) = (account, match)
            await tell()
        } catch {
            // The service has gone again; the link calls this for the next one.
            if attempt == self.attempt { self.account = nil }
        }
    }

    /// Reports, once, that there is no service, and why.
    func lose(_ error: UbiquitousStoreError) {
        attempt += 1
        (account, match) = (nil, nil)
        guard loss == nil else { return }
        let state = UbiquitousStore.AccountState(unavailable: error)
        loss = state
        for continuation in watchers.values { continuation.yield(state) }
    }

    /// Whether no service is being followed.
    var isIdle: Bool { account == nil }

    private func tell() async {
        guard let state = try? await account?.properties() else { return }
        for continuation in watchers.values { continuation.yield(UbiquitousStore.AccountState(state)) }
    }
}

extension SharedStore {
    /// Returns the account's states, from the present one on.
    func accountStates() -> AsyncStream<UbiquitousStore.AccountState> {
        let watcher = UUID()
        let (stream, continuation) = AsyncStream.makeStream(
            of: UbiquitousStore.AccountState.self, bufferingPolicy: .bufferingNewest(1))
        continuation.onTermination = { [link] _ in EventLoop.task { link.accountWatch.remove(watcher) } }
        EventLoop.task { [link] in
            await link.accountWatch.add(watcher, continuation)
            if link.accountWatch.isIdle, let object = try? await link.object() {
                await link.accountWatch.follow(object.connection)
            }
        }
        return stream
    }
}
