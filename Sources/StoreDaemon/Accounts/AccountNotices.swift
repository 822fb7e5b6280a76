// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import PropertyList
internal import Replication
internal import SDBus
internal import StoreBus
internal import StoreEngine
internal import SyncEngine

/// What subscribers and the log are told of a user's account and of what its sync has done.
@BusActor
final class AccountNotices {
    private unowned let account: UserAccount
    private let service: ServiceContext
    private let subscribers = AccountSubscribers()
    /// The number of subscriptions to the user's stores.
    private var storeSubscriptions = 0
    private var log = AccountLog()

    private var sync: AccountSync { account.sync }

    init(of account: UserAccount, in service: ServiceContext) {
        self.account = account
        self.service = service
    }

    // MARK: Subscribers

    /// Whether no client subscribes to the account or to one of the user's stores.
    var isUnheard: Bool { subscribers.isEmpty && storeSubscriptions == 0 }

    /// Subscribes a client through a path.
    func subscribe(_ client: Client, _ peer: Peer, at path: String) {
        subscribers.add(client, at: path) { [unowned self] in
            // A failure means that the connection to the bus is lost, and with it every subscriber.
            try? service.connection.signal(path, BusNames.accountInterface, "AccountChanged", to: peer) { signal in
                try append(stateFor: client, to: signal)
            }
        }
    }

    /// Ends a client's subscription through a path, if there is one.
    func unsubscribe(_ client: Client, at path: String) { subscribers.remove(client, at: path) }

    func isSubscribed(_ client: Client, at path: String) -> Bool { subscribers.contains(client, at: path) }

    /// Notes that the number of subscriptions to the user's stores has changed.
    func noteStoreSubscriptions(by difference: Int) {
        storeSubscriptions += difference
        sync.hasSubscribers = storeSubscriptions > 0
    }

    // MARK: Stores

    /// Tells a store's subscribers what sync has changed there, if the store is in use.
    func tell(_ notice: StoreNotice) {
        guard let store = account.user?.storeInUse(notice.store.identifier) else { return }
        var info: [String: Value] = [:]
        if let device = notice.device { info["origin-device"] = .string(Text(device)) }
        if notice.reason == .quotaViolationChange {
            info.merge(Self.quotaInfo(notice.store.usage, account.database.limits)) { $1 }
        } else if notice.reason == .accountChange {
            store.measure()
        }
        store.notify(notice.reason, keys: notice.keys, info: info)
    }

    private static func quotaInfo(_ usage: Usage, _ limits: Limits) -> [String: Value] {
        let isKeys = usage.keys > limits.keys
        return [
            "limit": .string(isKeys ? "keys" : "total-bytes"),
            "needed": .integer(Int64(isKeys ? usage.keys : usage.bytes)),
            "available": .integer(0),
        ]
    }

    // MARK: The account's state

    /// Tells the subscribers and the log the account's state, because it has changed.
    func tellState() {
        service.logger.debug("The account of \(account.userName) is \(sync.state.status.rawValue).")
        // While a cycle is under way, it isn't known yet whether the account works.
        if !sync.isSignedIn {
            log.forget()
        } else if sync.lastError != nil || sync.state != .syncing {
            let line = log.note(sync.lastError, ofUser: account.userName, EventLoop.now)
            if let line {
                service.logger.log(level: line.level, "\(withoutCredentials(line.text))")
            }
        }
        subscribers.tell()
    }

    /// Writes a signal's arguments: the state that a client may see.
    private func append(stateFor client: Client, to signal: Message) throws {
        try signal.append(sync.state.status.rawValue)
        try signal.appendDictionary {
            try signal.append(entry: "account-identifier", text: account.accountIdentifier)
            try signal.append(entry: "initial-sync-done", .boolean(account.isDownloaded))
            try signal.append(entry: "encrypted", .boolean(account.isEncrypted))
            guard let error = sync.lastError else { return }
            let told = Self.told(error, to: client)
            try signal.append(entry: "error-name", .string(Text(told.name)))
            try signal.append(entry: "error-message", text: told.message)
        }
    }

    /// Maps an error for a client. A sandboxed app doesn't learn where the account is.
    static func told(_ error: RemoteError, to client: Client) -> BusError { BusError(mapping: error, for: client) }

    // MARK: The log

    /// Logs something that the user has done with the account, unless there were many such lines lately.
    /// - Parameter warning: what administrators should know about it.
    func log(act text: String, warning: String? = nil) {
        guard let line = log.note(act: text, EventLoop.now) else { return }
        service.logger.log(level: line.level, "\(line.text)")
        if let warning { service.logger.warning("\(warning)") }
    }

    /// Logs a problem that cycles may meet again and again, at intervals.
    func log(problem text: String) { service.logProblem(withoutCredentials(text), of: account.uid) }

    /// A server's text may have what was sent to it.
    private func withoutCredentials(_ text: String) -> String {
        let credentials = try? account.saved.read()?.credentials
        return credentials?.removed(from: text) ?? text
    }
}
