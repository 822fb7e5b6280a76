// SPDX-License-Identifier: Apache-2.0

// A cluster of etcd as a remote. `Place` decides when a request takes effect and is answered. Members go away and come
// back, watches report late or never, and snapshots are restored.

internal import Etcd
internal import HTTPClient
internal import PropertyList
internal import Replication
internal import Sealing
internal import SyncEngine

/// The path to a cluster: what happens to requests on the way.
protocol RequestPath: AnyObject {
    var number: Int { get }
    var faultProfile: FaultProfile { get }
    func request<T>(
        _ client: Client, writes: Bool, then reply: @escaping (Result<T, RemoteError>) -> Void,
        _ effect: @escaping () -> Result<T, RemoteError>)
    func strikes(_ fault: Fault) -> Bool
    func isCut(_ client: Client) -> Bool
    func delay(_ duration: UInt64, _ effect: @escaping () -> Void)
    func noteHead(_ name: String, by client: Client)
}

extension Place: RequestPath {}

/// A cluster in memory.
final class Cluster {
    typealias Reply = (Result<Value, EtcdFailure>) -> Void

    private(set) var model = EtcdModel()
    private var snapshot: EtcdModel?
    /// When each member's absence ends.
    private var awayUntil: [UInt64] = Array(repeating: 0, count: Cluster.members)
    private var watches: [Int: Watch] = [:]
    private var watchCount = 0
    /// The last transactions that were sent, which may arrive again.
    private(set) var recorded: [(client: Client, body: Value)] = []

    /// Called with the key, without its prefix, and the value of every row that is sent.
    var onPut: ((_ row: String, _ bytes: [UInt8]) -> Void)?
    /// Called after a device was answered.
    var onAnswer: (_ device: Int) -> Void = { _ in }

    private unowned let place: any RequestPath
    private let timeline: Timeline
    private var chance: Chance

    static let members = 3

    /// A watch that a client has created.
    private struct Watch {
        let client: Client
        let member: Int
        let key: [UInt8]
        let take: (Value) -> Bool
        let end: () -> Void
        /// The revision from which the watch reports.
        var next: Int64
        /// Whether the connection is dead, and the client has not noticed.
        var isSilent = false
    }

    init(_ place: any RequestPath, seed: UInt64, timeline: Timeline) {
        (self.place, self.timeline) = (place, timeline)
        chance = Chance(seed: seed, stream: 200 + UInt64(place.number))
    }

    /// Makes the backend of a device's process.
    func backend(
        for client: Client, _ conditions: Conditions, _ environment: Environment, _ executor: any SerialExecutor,
        key: HeldKey?
    ) throws(RemoteError) -> any RemoteBackend {
        let members = (0..<Self.members).map { "member\($0)" }.joined(separator: ",")
        let (url, gateway) = ("etcd://\(members)/account", ClusterGateway(self, client, timeline))
        if let key {
            return try EtcdBackend.make(
                url: url, gateway: gateway, environment: environment, executor: executor, key: key)
        }
        return try EtcdBackend.make(
            url: url, gateway: gateway, environment: environment, executor: executor,
            limits: EtcdLimits(
                operations: conditions.mostOperations, tokens: conditions.mostTokens,
                heldBytes: conditions.mostOperations < 120 ? conditions.mostOperations * 16 : 8 << 20))
    }

    // MARK: Questions

    /// Sends a request to a member. A lost request is never answered.
    /// - Parameter begin: called if an answer begins to arrive, long before all of it is there.
    func ask(
        _ question: EtcdQuestion, of member: HTTPAddress, _ client: Client, begin: @escaping () -> Void,
        then reply: @escaping Reply
    ) {
        let (path, body) = (question.path, question.body)
        let writes = path == "/v3/kv/txn" && EtcdModel.writes(body)
        if writes { tellPuts(of: body) }
        place.request(client, writes: writes) { (result: Result<Result<Value, EtcdFailure>, RemoteError>) in
            switch result {
            case .success(let answer): reply(answer)
            case .failure(let error) where error.retryAfter != nil: reply(.failure(.refusal(Self.leaderChanged)))
            case .failure: if !client.isAlive { reply(.failure(.http(.closed, member))) }
            }
        } _: { [self] in
            if place.faultProfile.rate(.slowReply) > 0, chance.happens(0.5) { begin() }
            defer { onAnswer(client.device) }
            return .success(answer(path, body, of: Self.number(member), member, client, writes: writes))
        }
    }

    private func tellPuts(of body: Value) {
        guard let onPut else { return }
        for put in (body["success"]?.elements ?? []).compactMap({ $0["request_put"] }) {
            let row = (put["key"]?.bytes ?? []).dropFirst("account/".utf8.count)
            onPut(String(decoding: row, as: UTF8.self), put["value"]?.bytes ?? [])
        }
    }

    private func answer(
        _ path: String, _ body: Value, of number: Int, _ member: HTTPAddress, _ client: Client, writes: Bool
    ) -> Result<Value, EtcdFailure> {
        if isAway(number) { return .failure(.http(.refused(member.host), member)) }
        guard hasLeader else { return .failure(.refusal(Self.leaderChanged)) }
        if writes, place.strikes(.full) { return .failure(.refusal(Self.noSpace)) }
        if writes { note(body, of: client) }
        if writes, place.strikes(.latePut) {
            place.delay(chance.time(second, 2 * hour)) { [self] in _ = perform(path, body, client) }
            return .failure(.http(.timedOut(member.host), member))
        }
        if writes, place.strikes(.duplicatePut) {
            place.delay(chance.time(millisecond, hour)) { [self] in _ = perform(path, body, client) }
        }
        return perform(path, body, client)
    }

    private func note(_ body: Value, of client: Client) {
        recorded.append((client, body))
        if recorded.count > 64 { recorded.removeFirst() }
    }

    /// - Parameter client: the client that sent the request; `nil` if an older one arrives again.
    private func perform(_ path: String, _ body: Value, _ client: Client?) -> Result<Value, EtcdFailure> {
        if chance.happens(0.2) { model.advance(by: Int64(chance.of(1...20))) }
        let before = model.revision
        do throws(EtcdModel.Refusal) {
            let answer = try model.answer(path, body)
            if model.revision > before { tell(from: before + 1, by: client) }
            return .success(answer)
        } catch {
            return .failure(.refusal(EtcdRefusal(status: 400, code: error.code, reason: error.reason, host: "cluster")))
        }
    }

    private static func number(_ member: HTTPAddress) -> Int { Int(member.host.dropFirst(6)) ?? 0 }
    private func isAway(_ member: Int) -> Bool { awayUntil[member] > timeline.now }
    private var hasLeader: Bool { awayUntil.count { $0 > timeline.now } <= Self.members / 2 }

    private static let leaderChanged = EtcdRefusal(
        status: 503, code: 14, reason: "etcdserver: leader changed", host: "cluster")
    private static let noSpace = EtcdRefusal(
        status: 400, code: 8, reason: "etcdserver: mvcc: database space exceeded", host: "cluster")

    // MARK: Watching

    /// Creates a watch for a row.
    /// - Returns: a number for ``leave(_:)``.
    func watch(
        _ question: Value, of member: HTTPAddress, _ client: Client, take: @escaping (Value) -> Bool,
        end: @escaping () -> Void
    ) -> Int {
        watchCount += 1
        let number = watchCount
        let request = question["create_request"]
        let (key, start) = (request?["key"]?.bytes ?? [], request?["start_revision"]?.int64 ?? 0)
        place.request(client, writes: false) { (result: Result<Bool, RemoteError>) in
            guard case .success(true) = result else { return end() }
        } _: { [self] in
            if isAway(Self.number(member)) || !hasLeader { return .success(false) }
            watches[number] = Watch(
                client: client, member: Self.number(member), key: key, take: take, end: end,
                next: start > 0 ? start : model.revision + 1)
            begin(number, start)
            return .success(true)
        }
        return number
    }

    private func begin(_ number: Int, _ start: Int64) {
        let created: Value = .dictionary(["header": model.header, "created": .boolean(true)])
        deliver(created, to: number)
        guard start > 0, start <= model.compacted else { return tell(number) }
        let end: Value = .dictionary([
            "header": model.header, "canceled": .boolean(true),
            "compact_revision": .string(Text("\(model.compacted)")),
        ])
        watches[number]?.next = .max
        deliver(end, to: number)
    }

    func leave(_ number: Int) { watches[number] = nil }

    /// Reports new revisions to the watches.
    private func tell(from revision: Int64, by client: Client?) {
        let isPublication = model.events(since: revision).contains { $0.row != nil && $0.isOfDevice }
        if let client, isPublication { place.noteHead("h/", by: client) }
        for number in watches.keys.sorted() { tell(number) }
    }

    private func tell(_ number: Int) {
        guard let watch = watches[number] else { return }
        let events = model.events(since: watch.next).filter { $0.key == watch.key }
        if events.isEmpty { return }
        watches[number]?.next = model.revision + 1
        let told: [Value] = events.map { event in
            event.row.map { .dictionary(["kv": $0.json()]) } ?? .dictionary(["type": .string("DELETE")])
        }
        deliver(.dictionary(["header": model.header, "events": .array(told)]), to: number)
    }

    /// Delivers a message after the ones before it. The connection may break now, or may have died long before.
    private func deliver(_ message: Value, to number: Int) {
        timeline.after(20 * millisecond) { [self] in
            guard let watch = watches[number], !watch.isSilent else { return }
            if place.strikes(.lostReply) { return end(number) }
            if place.isCut(watch.client) || place.strikes(.lostRequest) {
                watches[number]?.isSilent = true
                return
            }
            if !watch.take(message) { end(number) }
        }
    }

    private func end(_ number: Int) { watches.removeValue(forKey: number)?.end() }

    private func endWatches(where isOver: (Watch) -> Bool) {
        for (number, watch) in watches.sorted(by: { $0.key < $1.key }) where isOver(watch) { end(number) }
    }

    // MARK: Faults

    func strike(_ fault: Fault) {
        switch fault {
        case .lostObject: takeAway([0, 1])
        case .rolledBackObject, .undoneDelete: takeAway([chance.below(Self.members)])
        case .rolledBackPlace: if let snapshot { restore(snapshot) }
        case .conflictCopy: if !recorded.isEmpty { askAgain(chance.below(recorded.count)) }
        case .junk: model.compact()
        default: break
        }
    }

    private func takeAway(_ members: [Int]) {
        for member in members { awayUntil[member] = timeline.now + chance.time(second, 10 * minute) }
        endWatches { members.contains($0.member) && chance.happens(0.8) }
    }

    func backUp() { snapshot = model }

    func restore(_ snapshot: EtcdModel) {
        model = snapshot.restored
        endWatches { _ in true }
    }

    /// Lets a recorded transaction arrive again.
    func askAgain(_ index: Int) { _ = perform("/v3/kv/txn", recorded[index].body, nil) }

    func heal() {
        awayUntil = Array(repeating: 0, count: Self.members)
        endWatches { $0.isSilent }
    }
}

extension EtcdModel.Event {
    private static let folders = ["/device/", "/blob/h/"].map { Array($0.utf8) }

    /// Whether a device has published. The keys of such rows end with an origin.
    fileprivate var isOfDevice: Bool {
        Self.folders.contains { key.dropLast(16).suffix($0.count).elementsEqual($0) }
    }
}
