// SPDX-License-Identifier: Apache-2.0

internal import SDBus

/// Has users take turns where calls come faster than they are answered.
///
/// Calls arrive in the order in which the bus has read them, and a user may have 30,000 under way. Most of them wait at
/// the bus, which passes on a few at a time. So this asks the bus something: the answer comes after all calls that it
/// has read before. Until then only some of a user's calls are answered as they come. The others are read and kept, so
/// the bus soon has none left. They go on a millisecond at a time, each user in turn, and before each turn the bus is
/// asked again. So whoever calls now and then waits only for what others' turns have brought.
@BusActor
final class Turns {
    /// Asks the bus something, and calls back with the answer. Without a bus, nothing waits.
    var ask: (@BusActor (_ answered: @escaping @BusActor () -> Void) -> Void)?

    /// The number of the burst: of the calls that follow each other without a pause.
    private(set) var burst: UInt64 = 0
    /// The number of the last question to the bus.
    private(set) var question: UInt64 = 0
    private var isAsking = false
    /// How many calls have arrived since the last answer.
    private var callsSinceAnswer = 0
    /// The user of the first call since the question, and whether others have called.
    private var callers: (first: ObjectIdentifier?, areSeveral: Bool) = (nil, false)
    /// The users whose waiting calls go on.
    private var line: [UserShare] = []
    private var next: EventSource?
    private var isTurn = false

    /// After how many calls the bus is asked.
    private static let mostUnasked = 64
    /// How many of a user's calls are answered as they come until the bus answers: beside others' calls, and otherwise.
    static let (mostBesideOthers, mostAlone) = (64, 2048)
    /// How many of those that can't wait, which libsystemd answers fast.
    static let mostUrgent = 4096
    /// How long a turn is, in microseconds.
    private static let length: UInt64 = 1_000
    /// How many microseconds the calls that are answered as they come may take: beside others' calls, and otherwise.
    static let (longestBesideOthers, longestAlone) = (length, 20 * length)
    /// How long a turn waits for the bus's answer. Calls that expect no reply may come for ever.
    private let longestWait: Duration

    /// How many calls have come since a question, and how long the longer ones took, in microseconds.
    struct Count {
        fileprivate var question: UInt64 = 0
        fileprivate var calls = 0
        var time: UInt64 = 0
    }

    nonisolated init(longestWait: Duration = .milliseconds(20)) { self.longestWait = longestWait }

    /// Whether nobody waits for a turn.
    var isIdle: Bool { line.isEmpty }

    /// Notes that everything that had arrived is answered.
    func noteDrained() { burst &+= 1 }

    /// Counts a user's call.
    /// - Parameter canWait: whether the call can be answered later.
    /// - Returns: whether the call may be answered as it comes. If not, it waits for the user's turn.
    func count(_ share: UserShare, canWait: Bool) -> Bool {
        callsSinceAnswer += 1
        if !isAsking {
            if callsSinceAnswer >= Self.mostUnasked { askBus() }
            return !canWait || !share.isInLine
        }
        let user = ObjectIdentifier(share)
        if callers.first == nil { callers.first = user }
        if callers.first != user { callers.areSeveral = true }
        if share.calls.question != question { share.calls = Count(question: question) }
        share.calls.calls += 1
        let isFew = canWait ? isFew(share.calls) && !share.isInLine : share.calls.calls <= Self.mostUrgent
        if !isFew { add(share) }
        return isFew
    }

    private func isFew(_ count: Count) -> Bool {
        callers.areSeveral
            ? count.calls <= Self.mostBesideOthers && count.time < Self.longestBesideOthers
            : count.calls <= Self.mostAlone && count.time < Self.longestAlone
    }

    private func askBus() {
        (isAsking, question, callers) = (true, question &+ 1, (nil, false))
        let answered: @BusActor () -> Void = { [weak self] in
            guard let self else { return }
            (isAsking, callsSinceAnswer) = (false, 0)
            continueSoon()
        }
        if let ask { ask(answered) } else { answered() }
    }

    /// Puts a user in line for a turn.
    func add(_ share: UserShare) {
        if share.isInLine { return }
        share.isInLine = true
        line.append(share)
        continueSoon()
    }

    /// Gives the next turn once the bus has answered, or in a while.
    private func continueSoon() {
        if line.isEmpty || isTurn || isAsking && next != nil { return }
        let wait = isAsking ? longestWait : .zero
        next = EventLoop.shared.after(wait, accuracy: .zero) { [weak self] in self?.giveTurn() }
    }

    private func giveTurn() {
        next = nil
        if line.isEmpty { return }
        let share = line.removeFirst()
        share.isInLine = false
        isTurn = true
        share.takeTurn(until: EventLoop.now + Self.length)
        isTurn = false
        if line.isEmpty { return }
        if !isAsking { askBus() }
        continueSoon()
    }
}
