// SPDX-License-Identifier: Apache-2.0

internal import SDBus
internal import StoreBus

// Which calls are answered now. Every call comes by here, those that libsystemd answers included.

extension Clients {
    /// Decides about a call: true lets it be answered now; otherwise it waits, is refused, or is left without an answer.
    func admit(_ call: IncomingCall) -> Bool {
        let client = client(call.peer)
        let kind = kinds.kind(of: call.message)
        let refusal = client.isSubordinate ? Self.subordinate : kind.refusal(of: call.message)
        guard call.message.expectsReply else {
            client.share.countUnanswered(size(ofUnanswered: call.message) + CallKind.overhead, EventLoop.now)
            return refusal == nil
        }
        if let refusal { return refuse(call, refusal, client) }
        guard client.delivery.hasRoom(for: kind.answer, takingLong: kind.mayTakeLong) else {
            return putOff(call, kind, client)
        }
        noteSent(kind.unweighed, to: call.peer)
        return true
    }

    /// Whether a peer's calls that want no answer are looked at. What is too much is dropped.
    ///
    /// The bus bounds for how many answers a connection may wait, and so how many of its calls are on their way. Of these
    /// it passes on as many as are sent, and everybody's calls wait behind them.
    func hearsUnanswered(_ peer: Peer) -> Bool {
        let client = client(peer)
        if client.isSubordinate { return false }
        let now = EventLoop.now
        if client.share.hasRoomForUnanswered(now) { return true }
        daemon.logRefusal(Self.tooManyUnanswered, of: client.uid, now)
        return false
    }

    private func size(ofUnanswered message: Message) -> Int {
        message.argumentSize(atMost: CallKind.smallArguments) ?? CallKind.largestArguments
    }

    private static let subordinate = BusError.accessDenied(
        "The caller's user id is one of those that a user has for containers (/etc/subuid), and has no stores.")

    private static let tooManyUnanswered =
        "Too many calls came that want no answer. Wait for answers, or send fewer at once."

    private func refuse(_ call: IncomingCall, _ error: BusError, _ client: Client) -> Bool {
        // Where even refusals pile up, the bus is to stop the caller: it waits for answers to so many calls only.
        if client.delivery.canRefuse { call.refuse(error) }
        return false
    }

    private func putOff(_ call: IncomingCall, _ kind: CallKind, _ client: Client) -> Bool {
        guard let size = size(ofWaiting: call, kind, client), let kept = size == .large ? call : call.kept() else {
            return refuse(call, Self.unread, client)
        }
        do {
            try client.delivery.wait(for: kind.answer, takingLong: kind.mayTakeLong, holding: size) {
                [unowned self] in
                noteSent(kind.unweighed, to: kept.peer)
                kept.dispatch()
            }
        } catch {
            return refuse(call, error, client)
        }
        return false
    }

    /// What a call takes while it waits; `nil` if it can't wait.
    private func size(ofWaiting call: IncomingCall, _ kind: CallKind, _ client: Client) -> HeldSize? {
        if let size = call.message.argumentSize(atMost: CallKind.smallArguments) {
            return .bytes(size + CallKind.overhead)
        }
        guard kind.bringsMuch, client.share.rest.isUnderWay, !client.share.holdsLarge else { return nil }
        if client.share.mayHoldLarge { return .large }
        // Others' calls have the places of those that aren't measured.
        return call.message.argumentSize(atMost: CallKind.largestArguments).map { .bytes($0 + CallKind.overhead) }
    }

    /// Decides about an answer that proved larger than admission took it for: true lets it be sent; otherwise it is made
    /// anew once there is room for one of its size, or refused.
    func admit(_ call: IncomingCall, answering bytes: Int) -> Bool {
        let client = client(call.peer)
        if client.delivery.fits(bytes) { return true }
        guard let size = call.message.argumentSize(atMost: CallKind.largestArguments), let kept = call.kept() else {
            return refuse(call, Self.unread, client)
        }
        do {
            try client.delivery.wait(
                for: bytes, takingLong: true, holding: .bytes(size + CallKind.overhead), isNext: true, kept.dispatch)
        } catch {
            return refuse(call, error, client)
        }
        return false
    }

    private static let unread = BusError.limitsExceeded(
        "The connection's answers are unread. Read them, and call again.")

    /// Counts what was sent to a peer.
    func noteSent(_ bytes: Int, to peer: Peer) {
        let client = client(peer)
        if client.delivery.noteSent(bytes) { keep(client, peer) }
    }
}

/// Finds the kinds of calls, and remembers the last one: most often the next call is of the same method.
@BusActor
struct CallKinds {
    private var method = LastMethod()
    private var last: CallKind?

    /// The kind of a call.
    mutating func kind(of call: Message) -> CallKind {
        if method.note(call), let last { return last }
        let kind = CallKind(call)
        last = kind
        return kind
    }
}

/// What a call brings and asks for, as far as its name tells.
struct CallKind {
    /// About how large the answer may be: small, or too large to be sent where a user's budget is spent.
    let answer: Int
    /// How large the arguments may be.
    private let arguments: Int
    /// The part of the answer that is counted nowhere else.
    let unweighed: Int
    /// Whether values or lists are written or read, however many there are.
    let mayTakeLong: Bool

    private static let small = 512
    private static let large = Message.largeAnswer
    /// Arguments of calls that bring no values.
    static let smallArguments = 64 << 10
    /// Arguments of any call that is answered later.
    static let largestArguments = 2 << 20
    /// What a call takes beside its arguments.
    static let overhead = 1 << 10
    /// What introspection says of any object but for the names below it.
    static let introspection = 16 << 10
    /// Longer paths belong to no object, and would come back in errors.
    private static let longestPath = 1024

    @BusActor
    init(_ message: Message) {
        let member = message.member ?? ""
        switch message.interface {
        case nil, BusNames.storeInterface, BusNames.managerInterface, BusNames.accountInterface,
            BusNames.defaultsInterface, BusNames.domainInterface:
            (answer, unweighed) = (Self.smallAnswers.contains(member) ? Self.small : Self.large, Self.small / 2)
            arguments = Self.largeArguments[member, default: Self.smallArguments]
            mayTakeLong = answer == Self.large || arguments == .max
        case "org.freedesktop.DBus.Introspectable":
            (answer, unweighed, arguments, mayTakeLong) = (Self.large, Self.introspection, Self.small, false)
        default:
            // Names that are not there come back in the error.
            (answer, unweighed, arguments, mayTakeLong) = (Self.small, Self.small, 2 * Self.small, false)
        }
    }

    /// Whether it brings values, however many there are.
    var bringsMuch: Bool { arguments == .max }

    /// Why the call is refused before anything looks at it; `nil` if it isn't.
    @BusActor
    func refusal(of message: Message) -> BusError? {
        guard message.pathLength <= Self.longestPath else { return .unknownObject }
        guard arguments < .max, message.argumentSize(atMost: arguments) == nil else { return nil }
        return .limitsExceeded("The arguments of this call may have \(arguments) bytes.")
    }

    private static let smallAnswers: Set<String> = [
        "SetValue", "RemoveValue", "Apply", "Synchronize", "Subscribe", "Unsubscribe", "OpenStore", "RemoveStore",
        "RegisterManifest", "Reload", "SignIn", "SignOut", "SyncNow", "Resolve", "SetPaused", "SetStoreSynchronized",
        "RenameDevice", "ForgetDevice", "RemoveDomain",
    ]

    /// The calls that bring much, and how much. Those without a bound here are bounded while they are read.
    private static let largeArguments = [
        "SetValue": Int.max, "Apply": .max, "GetValues": .max, "RegisterManifest": largestArguments, "SignIn": 1 << 20,
        "CheckBackend": 1 << 20,
        // A key that is too long gets the error that says so.
        "GetValue": largestArguments, "RemoveValue": largestArguments, "GetHistory": largestArguments,
    ]
}
