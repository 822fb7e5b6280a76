// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import PropertyList
internal import Replication
internal import SDBus
internal import StoreBus
internal import StoreEngine
internal import SyncEngine

extension UserAccount {
    /// Subscribes a client through a path.
    func subscribe(_ client: Client, _ peer: Peer, at path: String) {
        let key = SubscriptionKey(client, path)
        if subscribers[key] != nil { return }
        subscribers[key] = AccountSubscription(client, peer, path: path, to: self)
        client.noteSubscription(.objects, by: 1)
    }

    /// Ends the subscription of a client through a path, if there is one.
    func unsubscribe(_ client: Client, at path: String) {
        guard subscribers.removeValue(forKey: SubscriptionKey(client, path)) != nil else { return }
        client.noteSubscription(.objects, by: -1)
    }

    func isSubscribed(_ client: Client, at path: String) -> Bool { subscribers[SubscriptionKey(client, path)] != nil }

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
        daemon.logger.debug("The account of the user \(uid) is \(sync.state.wireName).")
        // What is under way says nothing yet.
        if sync.lastError != nil || sync.state != .syncing {
            let line = log.note(sync.state == .signedOut ? nil : sync.lastError, ofUser: userName, EventLoop.now)
            if let line { daemon.logger.log(level: line.level, "\(line.text)") }
        }
        untold.add(subscribers.keys)
        daemon.surroundings.follow(sync.isSignedIn || daemon.users.hasAccount)
    }

    /// An error as a client is told of it: to a sandboxed app it does not say where the account is.
    func told(_ error: RemoteError, to client: Client) -> BusError {
        BusError(mapping: error, for: client)
    }

    /// What a client is told of the state: a signal's arguments.
    func append(stateFor client: Client, to signal: Message) throws {
        try signal.append(sync.state.wireName)
        try signal.appendDictionary {
            try signal.append(entry: "account-identifier", text: accountIdentifier)
            try signal.append(entry: "initial-sync-done", .boolean(isDownloaded))
            try signal.append(entry: "encrypted", .boolean(isEncrypted))
            guard let error = sync.lastError else { return }
            let told = told(error, to: client)
            try signal.append(entry: "error-name", .string(Text(told.name)))
            try signal.append(entry: "error-message", text: told.message)
        }
    }
}

/// One connection's subscription to an account, through one of its paths.
///
/// A subscriber that does not read is told of the latest state once it does.
@BusActor
final class AccountSubscription {
    private let client: Client
    private let peer: Peer
    private let path: String
    private unowned let account: UserAccount
    private var isHeldUp = false

    /// A signal has about so many bytes.
    private static let size = 1 << 10

    init(_ client: Client, _ peer: Peer, path: String, to account: UserAccount) {
        (self.client, self.peer, self.path, self.account) = (client, peer, path, account)
    }

    /// Tells of the state, now or when there is room.
    func tell() {
        if isHeldUp { return }
        guard client.delivery.hasRoom(for: Self.size) else { return holdUp() }
        // If it fails, the connection is gone, and with it everyone who could be told.
        try? account.daemon.connection.signal(path, BusNames.accountInterface, "AccountChanged", to: peer) { signal in
            try account.append(stateFor: client, to: signal)
        }
    }

    private func holdUp() {
        isHeldUp = true
        client.delivery.wait(toTell: Self.size) { [weak self] in
            self?.isHeldUp = false
            self?.tell()
        }
    }
}
