// SPDX-License-Identifier: Apache-2.0

import PropertyList
import SeededRandom

@testable import UbiquitousStore

/// A service as simple as possible: a dictionary, a limit, and the keys that changed in each generation.
struct PlainService {
    var values: [Text: Value] = [:]
    var generation: UInt64 = 1000
    var log: [(generation: UInt64, key: Text)] = []
    /// The last generation whose changes the service no longer knows.
    var forgotten: UInt64 = 0
    static let limit = 40

    /// - Parameter since: what changed after this generation stays.
    /// - Returns: the keys that changed; `nil` if the result exceeds the limit.
    mutating func apply(_ changes: Changes, since: UInt64? = nil) -> [Text]? {
        let later = since.map { since in Set(log.filter { $0.generation > since }.map(\.key)) } ?? []
        let changes = changes.filter { !later.contains($0.key) }
        var after = values
        after.merge(changes)
        let grows = after.reduce(0) { $0 + $1.value.size } > values.reduce(0) { $0 + $1.value.size }
        if grows && after.reduce(0, { $0 + $1.value.size }) > Self.limit { return nil }
        let changed = changes.keys.filter { after[$0] != values[$0] }.sorted()
        values = after
        if changed.isEmpty { return [] }
        generation += 1
        log += changed.map { (generation, $0) }
        return changed
    }

    func snapshot(since: UInt64) -> Snapshot {
        guard since > forgotten, since <= generation else {
            return Snapshot(generation: generation, isComplete: true, values: values)
        }
        let keys = Set(log.filter { $0.generation > since }.map(\.key))
        return Snapshot(
            generation: generation, isComplete: false, values: values.filter { keys.contains($0.key) },
            removed: keys.filter { values[$0] == nil }.sorted())
    }
}

/// An app with its copy, a service, and two queues of messages between them. The steps are random.
struct LocalCopySimulation {
    enum Call {
        case apply([Write], since: UInt64?)
        case snapshot(UInt64)
    }
    enum Message {
        case acknowledged(UInt64)
        case refused
        case snapshot(Snapshot)
        case signal(ExternalChange)
    }

    /// A key that only the app writes.
    static let ownKey: Text = "own"

    var random: SplitMix
    var copy = LocalCopy()
    var service = PlainService()
    var calls: [Call] = []
    var messages: [Message] = []
    /// The change that the service will signal, merged as the service merges changes.
    var unsent: ExternalChange?
    var sendsToDo = 0
    /// The values as the app knows them, from its own writes and from announcements.
    var belief: [Text: Value] = [:]
    var waiting: Set<Ticket> = []
    var lastTicket: Ticket = 0
    var announced: [UInt32: Int] = [:]
    var failures: [String] = []
    /// The tickets of the app's writes that the service has applied.
    var taken: Set<Ticket> = []
    /// What was known when the app wrote, or when the service went, if that was earlier than it could be sent.
    var knownBefore: [Ticket: UInt64] = [:]
    /// What was sent before the service went: if it is there afterwards, it counts as the app's, whoever wrote it.
    var unanswered: Changes = [:]
    /// The generation of the last change of a key by others.
    var others: [Text: UInt64] = [:]
    let losesService: Bool
    /// Whether the service may forget what changed. The outcome of a lost call is then a guess.
    let forgets: Bool

    init(seed: UInt64) {
        random = SplitMix(seed: seed)
        losesService = seed % 2 == 0
        forgets = seed % 4 == 0
        if chance(2) { _ = service.apply(["a": 1, "b": "here before"]) }
        if chance(3) {
            copy.readEarly()
        } else {
            belief = service.values
        }
    }

    mutating func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &random) == 0 }

    /// - Returns: the failures.
    mutating func run(_ steps: Int) -> [String] {
        let waitedForFirst = !copy.isReadable
        if waitedForFirst { link(); quiesce() }
        for _ in 0..<steps {
            step()
            check()
        }
        if copy.link == .down { link() }
        quiesce()
        check()
        if copy.visible != service.values { failures.append("\(copy.visible) is not \(service.values)") }
        if belief != service.values { failures.append("the app believes \(belief), it is \(service.values)") }
        if !waiting.isEmpty { failures.append("nobody told \(waiting)") }
        if !copy.isSettled { failures.append("something still waits") }
        return failures
    }

    mutating func step() {
        switch Int.random(in: 0..<12, using: &random) {
        case 0...2: appWrites()
        case 3: othersWrite()
        case 4...6: serviceAnswers()
        case 7...9: copyHears()
        case 10: send()
        default: sometimes()
        }
    }

    /// Requests a snapshot that the copy hasn't asked for.
    mutating func refresh() {
        if copy.link != .down { calls.append(.snapshot(copy.generation ?? 0)) }
    }

    mutating func sometimes() {
        switch Int.random(in: 0..<8, using: &random) {
        case 0 where losesService: lose()
        case 1 where forgets: service.forgotten = service.generation
        case 2: tell(3, [])
        case 4: refresh()
        case 3 where copy.link == .up && isOnItsWay && losesService: postpone()
        default: if copy.link == .down { link() }
        }
    }

    mutating func quiesce() {
        for _ in 0..<10_000 {
            if sendsToDo == 0 && calls.isEmpty && messages.isEmpty && unsent == nil { return }
            send()
            serviceAnswers()
            copyHears()
        }
        failures.append("it never comes to rest")
    }

    // MARK: Events

    mutating func randomValue() -> Value {
        switch Int.random(in: 0..<4, using: &random) {
        case 0: .boolean(Bool.random(using: &random))
        case 1: .data([UInt8](repeating: 1, count: Int.random(in: 10..<50, using: &random)))
        default: .integer(Int64.random(in: 0..<5, using: &random))
        }
    }

    mutating func randomChanges(_ keys: [Text]) -> Changes {
        var changes: Changes = [:]
        for _ in 0..<(chance(4) ? 2 : 1) {
            let key = keys.randomElement(using: &random) ?? "a"
            changes[key] = .some(chance(4) ? nil : randomValue())
        }
        return changes
    }

    mutating func appWrites() {
        let changes = randomChanges(["a", "b", "c", "d", Self.ownKey])
        lastTicket += 1
        waiting.insert(lastTicket)
        belief.merge(changes)
        if copy.link == .down, copy.known > 0 { knownBefore[lastTicket] = copy.known }
        perform(
            copy.write(
                Write(
                    changes, size: changes.reduce(0) { $0 + ($1.value?.size ?? 0) }, tickets: [lastTicket],
                    time: lastTicket / 3)))
    }

    mutating func othersWrite() {
        if let keys = service.apply(randomChanges(["a", "b", "c", "d"])) {
            for key in keys { others[key] = service.generation }
            if !keys.isEmpty { tell(chance(2) ? 0 : 16, keys) }
        } else {
            tell(2, ["z"])
        }
    }

    mutating func tell(_ reason: UInt32, _ keys: [Text]) {
        guard copy.link != .down else { return }
        if let former = unsent {
            if former.reason == reason {
                unsent?.keys = Set(former.keys + keys).sorted()
                unsent?.generation = service.generation
                return
            }
            messages.append(.signal(former))
        }
        unsent = ExternalChange(reason: reason, keys: keys, generation: service.generation)
    }

    mutating func serviceAnswers() {
        if !calls.isEmpty {
            switch calls.removeFirst() {
            case .snapshot(let since): messages.append(.snapshot(service.snapshot(since: since)))
            case .apply(let writes, let since): serviceTakes(writes, since)
            }
        }
        if let signal = unsent, chance(2) {
            messages.append(.signal(signal))
            unsent = nil
        }
    }

    mutating func serviceTakes(_ writes: [Write], _ since: UInt64?) {
        let before = service.values
        let again = since == nil ? writes.filter { !taken.isDisjoint(with: $0.tickets) } : []
        guard service.apply(writes.changes, since: since) != nil else {
            messages.append(.refused)
            return tell(2, writes.changes.keys.sorted())
        }
        messages.append(.acknowledged(service.generation))
        if !forgets, again.contains(where: { $0.changes.keys.contains { before[$0] != service.values[$0] } }) {
            failures.append("\(again.map(\.changes)) was sent again over \(before)")
        }
        for write in writes where !write.tickets.isEmpty {
            let known = write.tickets.map { knownBefore[$0] ?? .max }.max() ?? .max
            for key in write.changes.keys where others[key] ?? 0 > known && before[key] != service.values[key] {
                if unanswered[key] == .some(before[key]) { continue }
                failures.append("the late write \(write.changes) has replaced a later one of \(key)")
            }
        }
        taken.formUnion(writes.flatMap(\.tickets))
    }

    mutating func copyHears() {
        guard !messages.isEmpty else { return }
        switch messages.removeFirst() {
        case .acknowledged(let generation): perform(copy.acknowledged(generation))
        case .refused: perform(copy.refused(UbiquitousStoreError(.quotaExceeded, "too much")))
        case .snapshot(let snapshot): perform(copy.loaded(snapshot))
        case .signal(let signal): perform(copy.received(signal))
        }
    }

    mutating func send() {
        guard sendsToDo > 0 else { return }
        sendsToDo -= 1
        if let call = copy.nextCall() { calls.append(.apply(copy.sent, since: call.since)) }
    }

    /// Whether a call was sent that the service has not read.
    var isOnItsWay: Bool { calls.contains { if case .apply = $0 { true } else { false } } }

    mutating func postpone() {
        perform(copy.postponed(UbiquitousStoreError(.storageFailed, "no space")))
        forgetMessages()
    }

    mutating func lose() {
        // The service may still apply a call that was sent.
        if chance(2), !calls.isEmpty { serviceAnswers() }
        unanswered.merge(copy.unanswered) { $1 }
        for ticket in copy.queue.writes.flatMap(\.tickets) where copy.known > 0 && knownBefore[ticket] == nil {
            knownBefore[ticket] = copy.known
        }
        copy.lost()
        forgetMessages()
    }

    mutating func forgetMessages() {
        calls = []
        messages = []
        unsent = nil
    }

    mutating func link() {
        forgetMessages()
        perform(copy.linked())
    }

    // MARK: The copy's actions

    mutating func perform(_ actions: [LocalCopy.Action]) {
        for action in actions {
            switch action {
            case .fetch(let generation): calls.append(.snapshot(generation))
            case .send: sendsToDo += 1
            case .finish(let tickets, _):
                for ticket in tickets where waiting.remove(ticket) == nil {
                    failures.append("\(ticket) was told twice")
                }
            case .announce(let announcement): believe(announcement)
            }
        }
    }

    mutating func believe(_ announcement: Announcement) {
        announced[announcement.reason, default: 0] += 1
        for change in announcement.changes {
            if belief[change.key] != change.old {
                failures.append("\(change) is announced to an app that knows \(belief[change.key] as Any)")
            }
            belief[change.key] = change.new
        }
        if announcement.reason == 0 || announcement.reason == 16 {
            if announcement.changes.contains(where: { $0.key == Self.ownKey }) {
                failures.append("a write that nobody else replaced was dropped: \(announcement)")
            }
            if announcement.changes.isEmpty || announcement.changes.contains(where: { $0.old == $0.new }) {
                failures.append("nothing is announced: \(announcement)")
            }
        }
    }

    /// Compares with the obvious version: the service's last known values, with every unanswered write applied.
    mutating func check() {
        var obvious = copy.base
        for write in copy.sent + copy.queue.writes { obvious.merge(write.changes) }
        if obvious != copy.visible { failures.append("\(copy.visible) should be \(obvious)") }
    }
}
