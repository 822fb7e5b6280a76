// SPDX-License-Identifier: Apache-2.0

internal import SDBus
internal import StoreBus

// Which calls are answered now. Every call passes here, including those that libsystemd answers.

extension Clients {
    /// Decides about a call. Returns true to answer it now; otherwise it waits, is refused, or stays unanswered.
    func admit(_ call: IncomingCall) -> Bool {
        let client = client(call.peer)
        let kind = kinds.kind(of: call.message)
        let refusal = client.isSubordinate ? Self.subordinate : kind.refusal(of: call.message)
        if !call.message.expectsReply {
            client.share.countUnanswered(size(ofUnanswered: call.message) + CallKind.overhead, EventLoop.now)
        }
        // Calls that expect no reply wait for no turn: how many there are is bounded already, and others expect to find
        // them done once their sender has ended.
        let isTurn =
            !call.message.expectsReply || shares.turns.count(client.share, canWait: kind.canWait || refusal != nil)
        if let refusal {
            if !call.message.expectsReply { return false }
            return isTurn ? refuse(call, refusal, client) : refuseLater(call, refusal, client)
        }
        let isBehindAnother =
            kind.canWait && client.share.mustWait && client.share.unansweredCalls.hasOne(for: object(of: call))
        guard isTurn, !isBehindAnother, hasRoom(for: kind, client) else { return putOff(call, kind, client) }
        begin(call, kind, client)
        return true
    }

    /// Returns the last element of the path of a call's object, which all paths of a store have.
    private func object(of call: IncomingCall) -> String? {
        guard let path = call.message.path, path != "/", let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else {
            return nil
        }
        return String(path[path.index(after: slash)...])
    }

    /// Counts a part of the answer of a call that is dispatched now.
    private func begin(_ call: IncomingCall, _ kind: CallKind, _ client: Client) {
        if call.message.expectsReply { noteSent(kind.unweighed, to: client, call.peer) }
    }

    /// Whether a call is answered now, if it is the user's turn. What libsystemd answers waits neither behind other calls
    /// nor for the end of a rest, because libsystemd can't be asked a second time.
    private func hasRoom(for kind: CallKind, _ client: Client) -> Bool {
        client.delivery.hasRoom(for: kind.answer, takingLong: kind.mayTakeLong)
            || !kind.canWait && client.delivery.fits(kind.answer) && client.share.rest.allowsUrgent
    }

    /// Whether a peer's calls that expect no reply are read. The excess is dropped.
    ///
    /// The bus bounds how many replies a connection may wait for, and thus how many calls are under way. Calls that
    /// expect no reply have no such bound, and everybody's calls wait behind them.
    func acceptsCallsWithoutReply(_ peer: Peer) -> Bool {
        let client = client(peer)
        if client.isSubordinate { return false }
        let now = EventLoop.now
        if client.share.hasRoomForUnanswered(now) { return true }
        service.logRefusal(Self.tooManyUnanswered, of: client.uid, now)
        return false
    }

    private func size(ofUnanswered message: Message) -> Int {
        message.argumentSize(atMost: CallKind.smallArguments) ?? CallKind.largestArguments
    }

    private static let subordinate = BusError.accessDenied(
        "The caller's user id is a subordinate one, for containers (/etc/subuid), and can't have stores.")

    private static let tooManyUnanswered =
        "The user has sent too many calls that expect no reply. Expect replies, or send fewer at once."

    /// Logs that some of a peer's first calls got no answer.
    func logUnanswered(_ peer: Peer) {
        service.logRefusal(Self.tooManyAtOnce, of: client(peer).uid, EventLoop.now)
    }

    private static let tooManyAtOnce =
        "The user has too many calls under way at once. Those that find no room to wait get no answer."

    private func refuse(_ call: IncomingCall, _ error: BusError, _ client: Client) -> Bool {
        guard call.message.expectsReply else {
            service.logRefusal(Self.tooManyUnanswered, of: client.uid, EventLoop.now)
            return false
        }
        // If even refusals pile up, the call stays unanswered, and the bus's bound on such calls stops the caller.
        if client.delivery.canRefuse { call.refuse(error) }
        return false
    }

    /// Refuses a call that can't wait. The refusal waits for its user's turn, or the end of the rest, so that a caller who
    /// tries again at once doesn't keep the service busy.
    /// - Parameter arguments: how many bytes of arguments the call has, if it was measured.
    private func refuseLater(
        _ call: IncomingCall, _ error: BusError, _ client: Client, arguments: Int? = nil
    ) -> Bool {
        if client.share.mustWait, call.message.expectsReply, let kept = call.kept(withArguments: false) {
            var refusal = WaitingWork(bytes: CallKind.small, takesLong: true, held: .refusal) { [unowned self] in
                _ = refuse(kept, error, self.client(kept.peer))
            }
            refusal.arguments =
                arguments ?? call.message.argumentSize(atMost: CallKind.largestArguments) ?? CallKind.largestArguments
            if (try? client.delivery.wait(refusal)) != nil { return false }
            // Refused now, its caller would call again at once, and everybody's calls would wait behind that.
            if client.share.isInLine {
                service.logRefusal(Self.tooManyAtOnce, of: client.uid, EventLoop.now)
                return false
            }
        }
        return refuse(call, error, client)
    }

    /// Has a call wait, or refuses it. Returns true to answer it now after all.
    private func putOff(_ call: IncomingCall, _ kind: CallKind, _ client: Client) -> Bool {
        // What finds no room is not copied, nor what was not measured.
        guard let size = size(ofWaiting: call, kind, client),
            let kept = size == .large || !client.share.hasRoom(toHold: size) ? call : call.kept()
        else {
            // It was only not the user's turn, and no earlier call of the connection waits.
            if hasRoom(for: kind, client) {
                begin(call, kind, client)
                return true
            }
            return refuseLater(call, client.share.mustWait ? Self.resting : Self.unread, client)
        }
        let arguments: Int? = if case .bytes(let bytes) = size { bytes - CallKind.overhead } else { nil }
        do {
            var work = WaitingWork(bytes: kind.answer, takesLong: kind.mayTakeLong, held: size) { [unowned self] in
                begin(kept, kind, self.client(kept.peer))
                kept.dispatch()
            }
            if !call.message.expectsReply {
                work.kind = .unansweredCall
            } else if let arguments {
                work.arguments = arguments
            }
            work.object = object(of: call)
            try client.delivery.wait(work)
        } catch {
            // The user's other programs have taken all room. A program that makes one call at a time goes on.
            if hasRoom(for: kind, client), client.delivery.passesOnce(since: shares.turns.question) {
                begin(call, kind, client)
                return true
            }
            return refuseLater(call, error, client, arguments: arguments)
        }
        return false
    }

    /// Returns how much a call takes while it waits; `nil` if it can't wait.
    private func size(ofWaiting call: IncomingCall, _ kind: CallKind, _ client: Client) -> HeldSize? {
        if let size = call.message.argumentSize(atMost: CallKind.smallArguments) {
            return .bytes(size + CallKind.overhead)
        }
        guard client.share.mustWait else { return nil }
        if kind.bringsMuch, client.share.rest.isUnderWay {
            if client.share.holdsLarge { return nil }
            if client.share.mayHoldLarge { return .large }
        }
        // Other calls use the slots for unmeasured calls, or there are many of them.
        return call.message.argumentSize(atMost: CallKind.largestArguments).map { .bytes($0 + CallKind.overhead) }
    }

    /// Decides about an answer that proved larger than expected. Returns true to send it now; otherwise it is made
    /// again once there is room for its size, or refused.
    func admit(_ call: IncomingCall, answering bytes: Int) -> Bool {
        let client = client(call.peer)
        if client.delivery.fits(bytes) { return true }
        guard call.message.hasArguments, let size = call.message.argumentSize(atMost: CallKind.largestArguments),
            let kept = call.kept()
        else { return refuse(call, Self.unread, client) }
        do {
            try client.delivery.wait(
                WaitingWork(
                    bytes: bytes, takesLong: true, held: .bytes(size + CallKind.overhead), work: kept.dispatch),
                isNext: true)
        } catch {
            return refuse(call, error, client)
        }
        return false
    }

    private static let resting = BusError.limitsExceeded(
        "The user's other calls have kept the service busy, and this one is too large to wait. Call again.")

    private static let unread = BusError.limitsExceeded(
        "The connection's answers are unread. Read them, and call again.")

    /// Counts the time that the loop spent for a call.
    func note(_ time: WorkTime, of peer: Peer) {
        let taken = time.taken(ifAtLeast: Self.shortCall)
        if taken > 0 { client(peer).share.note(taken, inBurst: shares.turns.burst) }
    }

    /// The time in microseconds of a call that isn't counted.
    private static let shortCall: UInt64 = 50

    /// Counts bytes that were sent to a peer.
    func noteSent(_ bytes: Int, to peer: Peer) { noteSent(bytes, to: client(peer), peer) }

    private func noteSent(_ bytes: Int, to client: Client, _ peer: Peer) {
        if client.delivery.noteSent(bytes) { keep(client, peer) }
    }
}

/// Finds the kinds of calls. It remembers the last one, because the next call is often of the same method.
@BusActor
struct CallKinds {
    private var method = LastMethod()
    private var last: CallKind?

    /// Returns the kind of a call.
    mutating func kind(of call: Message) -> CallKind {
        if method.note(call), let last { return last }
        let kind = CallKind(call)
        last = kind
        return kind
    }
}

/// The costs of a call, as far as its name tells. Sizes are in bytes.
struct CallKind {
    /// About the largest size of the answer: small, or too large to be sent once a user's budget is spent.
    let answer: Int
    /// The largest size of the arguments; `.max` if they are bounded while they are read.
    private let arguments: Int
    /// The part of the answer that is counted nowhere else.
    let unweighed: Int
    /// Whether the call has to do with a user's data, so that it waits while the user's calls rest.
    let mayTakeLong: Bool
    /// Whether this service answers the call, and not libsystemd.
    private(set) var canWait = true

    /// The size of a small answer, such as an error.
    static let small = 512
    private static let large = Message.largeAnswer
    /// The largest arguments of calls that bring no values.
    static let smallArguments = 64 << 10
    /// The largest arguments of any call that is answered later.
    static let largestArguments = 2 << 20
    /// What a call takes besides its arguments.
    static let overhead = 1 << 10
    /// The same for a call under way, which has a task.
    static let overheadUnderWay = 16 << 10
    /// The size of an object's introspection, without the names below it.
    static let introspection = 16 << 10
    /// No object has a longer path, and errors would repeat the path.
    private static let longestPath = 1024

    @BusActor
    init(_ message: Message) {
        let member = message.member ?? ""
        switch message.interface {
        case nil, BusNames.storeInterface, BusNames.managerInterface, BusNames.accountInterface,
            BusNames.defaultsInterface, BusNames.domainInterface, BusNames.administrationInterface:
            (answer, unweighed) = (Self.smallAnswers.contains(member) ? Self.small : Self.large, Self.small / 2)
            arguments = Self.largeArguments[member, default: Self.smallArguments]
            mayTakeLong = true
        case "org.freedesktop.DBus.Introspectable":
            (answer, unweighed, arguments, mayTakeLong) = (Self.large, Self.introspection, Self.small, true)
            canWait = false
        case "org.freedesktop.DBus.Properties":
            (answer, unweighed, arguments, mayTakeLong) = (Self.small, Self.small, 2 * Self.small, true)
        default:
            // Errors repeat unknown names. libsystemd looks for an object first, unless the interface is for all paths.
            (answer, unweighed, arguments) = (Self.small, Self.small, 2 * Self.small)
            mayTakeLong = message.interface != "org.freedesktop.DBus.Peer"
            canWait = false
        }
    }

    /// Whether the call may bring any number of bytes.
    var bringsMuch: Bool { arguments == .max }

    /// Returns why the call is refused before it is read; `nil` if it isn't.
    @BusActor
    func refusal(of message: Message) -> BusError? {
        guard message.pathLength <= Self.longestPath else { return .unknownObject }
        if arguments == .max { return nil }
        do {
            if try message.readableArgumentSize(atMost: arguments) != nil { return nil }
            return .limitsExceeded("The arguments of this call may have \(arguments) bytes.")
        } catch { return error }
    }

    /// The methods of this service with small answers.
    static let smallAnswers: Set<String> = [
        "SetValue", "RemoveValue", "Apply", "Synchronize", "Subscribe", "Unsubscribe", "OpenStore", "RemoveStore",
        "RegisterManifest", "Reload", "SignIn", "SignOut", "SyncNow", "Resolve", "SetPaused", "SetStoreSynchronized",
        "RenameDevice", "ForgetDevice", "RemoveDomain", "GetRecoveryPhrase", "Encrypt", "ReplaceKey", "Unlock",
        "GetUsage",
        "TrimHistory", "BackUp", "Adopt", "Delete",
    ]

    /// The calls with large arguments, and their bounds. `.max` means that they are bounded while they are read: those
    /// of values, and those of one key, which is read as fast as it is measured.
    static let largeArguments = [
        "SetValue": Int.max, "Apply": .max, "GetValues": .max, "GetValue": .max, "RemoveValue": .max,
        "GetHistory": .max, "RegisterManifest": largestArguments, "SignIn": 1 << 20, "CheckBackend": 1 << 20,
    ]
}
