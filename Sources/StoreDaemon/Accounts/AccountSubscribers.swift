// SPDX-License-Identifier: Apache-2.0

internal import SDBus

/// The clients that subscribe to an account's state.
@BusActor
final class AccountSubscribers {
    private var subscriptions: [SubscriptionKey: AccountSubscription] = [:]
    private lazy var untold = PacedQueue<SubscriptionKey> { [unowned self] in subscriptions[$0]?.tell() }

    var isEmpty: Bool { subscriptions.isEmpty }

    /// Subscribes a client through a path.
    /// - Parameter signal: sends the client the state at that moment.
    func add(_ client: Client, at path: String, _ signal: @escaping @BusActor () -> Void) {
        let key = SubscriptionKey(client, path)
        if subscriptions[key] != nil { return }
        subscriptions[key] = AccountSubscription(client.delivery, signal)
        client.noteSubscription(.objects, by: 1)
    }

    /// Ends a client's subscription through a path, if there is one.
    func remove(_ client: Client, at path: String) {
        guard let subscription = subscriptions.removeValue(forKey: SubscriptionKey(client, path)) else { return }
        subscription.cancel()
        client.noteSubscription(.objects, by: -1)
    }

    func contains(_ client: Client, at path: String) -> Bool { subscriptions[SubscriptionKey(client, path)] != nil }

    /// Sends the state to all subscribers.
    func tell() { untold.add(subscriptions.keys) }
}

/// A connection's subscription to an account through one of the account's paths.
///
/// A subscriber that doesn't read gets only the latest state once it does.
@BusActor
private final class AccountSubscription {
    private let delivery: Delivery
    private let signal: @BusActor () -> Void
    private var isHeldUp = false

    /// About how many bytes a signal has.
    private static let size = 1 << 10

    init(_ delivery: Delivery, _ signal: @escaping @BusActor () -> Void) {
        (self.delivery, self.signal) = (delivery, signal)
    }

    /// Sends the state, now or once there is room.
    func tell() {
        if isHeldUp { return }
        if delivery.hasRoom(for: Self.size) { return signal() }
        isHeldUp = true
        delivery.wait(toTell: self, bytes: Self.size) { [weak self] in
            self?.isHeldUp = false
            self?.signal()
        }
    }

    func cancel() { if isHeldUp { delivery.forget(self) } }
}
