// SPDX-License-Identifier: Apache-2.0

internal import SDBus

/// A call or a signal that waits until there is room for what it sends.
struct WaitingWork {
    /// About how many bytes it sends.
    let bytes: Int
    /// Whether it waits while its user's calls rest.
    let takesLong: Bool
    /// What a call holds while it waits; `nil` for a signal.
    let held: HeldSize?
    var kind = Kind.call
    /// The bytes of a call's arguments, because its caller may send as many again once it has the reply; 0 if there is no
    /// reply or they were not measured.
    var arguments = 0
    /// The last element of the path of a call's object, which all paths of a store have; `nil` for what waits no longer
    /// than it must.
    var object: String?
    /// The number of a call among the user's calls that have waited, in their order.
    var arrival: UInt64 = 0
    let work: () -> Void

    enum Kind {
        case call
        /// A call whose caller expects no reply.
        case unansweredCall
        case signal(of: AnyObject)
    }

    /// The time in microseconds that reading another call of this size, measuring and copying it take.
    var readingTime: UInt64 { UInt64(arguments / Self.bytesPerMicrosecond) }
    private static let bytesPerMicrosecond = 512

    var isCall: Bool { if case .call = kind { true } else { false } }
    var isUnansweredCall: Bool { if case .unansweredCall = kind { true } else { false } }

    func isSignal(of subscription: AnyObject) -> Bool {
        if case .signal(let own) = kind { own === subscription } else { false }
    }
}

/// What waits for a client, in its order.
typealias WaitingLine = WaitingQueue<WaitingWork>

extension WaitingLine {
    /// - Parameter isNext: whether it comes before everything else.
    mutating func add(_ work: WaitingWork, isNext: Bool) {
        if isNext { prepend(work) } else { append(work) }
    }

    /// Removes the signal of a subscription, if it waits.
    mutating func removeSignal(of subscription: AnyObject) { removeFirst { $0.isSignal(of: subscription) } }
}

/// The calls of a user that wait and expect no reply, by their objects and in their order. Later calls for the same
/// object wait for them: whoever sent them may have ended, and the user's other programs then expect to find them done.
@BusActor
struct UnansweredCalls {
    private var queues: [String: WaitingQueue<(arrival: UInt64, delivery: Delivery)>] = [:]

    nonisolated init() {}

    mutating func add(_ call: WaitingWork, _ delivery: Delivery) {
        guard call.isUnansweredCall, let object = call.object else { return }
        queues[object, default: WaitingQueue()].append((call.arrival, delivery))
    }

    mutating func remove(_ call: WaitingWork) {
        guard call.isUnansweredCall, let object = call.object else { return }
        queues[object]?.removeFirst { $0.arrival == call.arrival }
        if queues[object]?.isEmpty == true { queues[object] = nil }
    }

    /// Whether one for an object waits.
    func hasOne(for object: @autoclosure () -> String?) -> Bool {
        !queues.isEmpty && object().map { queues[$0] != nil } == true
    }

    /// Returns the client whose calls have to go on before a call; `nil` if there is none, or it has no room.
    func delivery(before call: WaitingWork) -> Delivery? {
        guard let object = call.object, let queue = queues[object] else { return nil }
        for earlier in queue {
            if earlier.arrival >= call.arrival { return nil }
            if earlier.delivery.canProceed { return earlier.delivery }
        }
        return nil
    }
}
