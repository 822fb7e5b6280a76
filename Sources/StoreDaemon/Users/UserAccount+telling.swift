// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import PropertyList
internal import Replication
internal import SDBus
internal import StoreBus
internal import StoreEngine
internal import SyncEngine

extension UserAccount {
    func subscribe(_ client: Client) {
        if subscribers.updateValue(client, forKey: ObjectIdentifier(client)) == nil { subscribersChanged(by: 0) }
    }

    /// - Returns: whether there was a subscription.
    @discardableResult
    func unsubscribe(_ client: Client) -> Bool {
        subscribers.removeValue(forKey: ObjectIdentifier(client)) != nil
    }

    func isSubscribed(_ client: Client) -> Bool { subscribers[ObjectIdentifier(client)] != nil }

    /// The stores have more or fewer subscribers.
    func subscribersChanged(by difference: Int) {
        storeSubscriptions += difference
        sync.hasSubscribers = storeSubscriptions > 0
    }

    func tell(_ notice: StoreNotice) {
        guard let store = try? daemon.users.user(uid).storeInUse(notice.store.identifier) else { return }
        var info: [String: Value] = [:]
        if let device = notice.device { info["origin-device"] = .string(Text(device)) }
        if notice.reason == .quotaViolationChange {
            info.merge(Self.quotaInfo(notice.store.usage, database.limits)) { $1 }
        }
        store.notify(notice.reason, keys: notice.keys, info: info)
    }

    static func quotaInfo(_ usage: Usage, _ limits: Limits) -> [String: Value] {
        let isKeys = usage.keys > limits.keys
        return [
            "limit": .string(isKeys ? "keys" : "total-bytes"),
            "needed": .integer(Int64(isKeys ? usage.keys : usage.bytes)),
            "available": .integer(0),
        ]
    }

    func tellState() {
        if let error = sync.lastError, error != loggedError {
            daemon.logger.info("The account of the user \(uid): \(error.message)")
        }
        loggedError = sync.lastError
        for client in subscribers.values { tellState(client) }
    }

    /// An error as a client is told of it: to a sandboxed app it does not say where the account is.
    func told(_ error: RemoteError, to client: Client) -> BusError {
        let told = BusError(remote: error)
        guard client.isSandboxed else { return told }
        return BusError(name: told.name, message: "Only programs outside of sandboxes are told more")
    }

    func tellState(_ client: Client) {
        do {
            let signal = try daemon.connection.newSignal(
                path, BusNames.accountInterface, "AccountChanged", to: client.peer.uniqueName)
            try signal.append(sync.state.rawValue)
            try signal.appendDictionary {
                try signal.append(entry: "account-identifier", .string(Text(accountIdentifier)))
                try signal.append(entry: "initial-sync-done", .boolean(isDownloaded))
                guard let error = sync.lastError else { return }
                let told = told(error, to: client)
                try signal.append(entry: "error-name", .string(Text(told.name)))
                try signal.append(entry: "error-message", .string(Text(told.message)))
            }
            try daemon.connection.send(signal)
        } catch {
            // The connection is gone, and with it everybody who could be told.
        }
    }
}
