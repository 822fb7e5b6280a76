// SPDX-License-Identifier: Apache-2.0

// A remote that stores objects under names, and its faults.
//
// A server has one view for all devices. A folder has a view for each device, and other software carries objects
// between the views: each by itself, late, and in any order. A newer version of an object replaces an older one.
//
// A request takes effect a while after it was sent, and is answered a while after that. Once sent, it takes effect even
// if the sender has died.

internal import Replication
internal import SyncEngine

/// The sender of requests: one process of a device.
final class Client {
    let device: Int
    /// Whether the process is alive. A dead one gets no answers.
    var isAlive = true
    /// How many more writing requests the process sends before it dies; `nil` if it does not die.
    var deathAfter: Int?
    var onDeath: () -> Void = {}

    init(device: Int) { self.device = device }
}

/// A remote.
final class Place<Blob> {
    enum Kind: String { case server, folder }

    typealias Reply<T> = (Result<T, RemoteError>) -> Void

    let number: Int
    let kind: Kind
    /// The cluster, if the remote is one. It stores no objects then.
    var cluster: Cluster?
    /// The present faults.
    var faultProfile = FaultProfile.fair
    /// Whether listings may repeat names, and whether they may be old.
    var repeatsListings = false
    var agesListings = false
    private var formerListings: [String: [String]] = [:]
    /// How the storage reports the versions of heads.
    var tags = Tags.none
    private var writtenAt: [Int: UInt64] = [:]
    /// Whether acknowledged objects may be lost. Otherwise only new objects are torn, so that no replaced one is lost.
    var losesObjects = false
    private var isWell = false
    /// Whether objects travel only with ``carryAll(below:from:to:)``.
    var isCarriedByHand = false
    private var late: [Int: () -> Void] = [:]
    private var delays = 0
    /// Until when devices can't reach the remote, or see an empty directory.
    var cutUntil: [Int: UInt64] = [:]
    var unpluggedUntil: [Int: UInt64] = [:]
    /// Until when the listings of devices leave out the heads.
    var headlessUntil: [Int: UInt64] = [:]
    /// The number of requests, and how many of them wrote a head.
    private(set) var requests = 0
    private(set) var headPuts = 0
    private(set) var lastHeadPut: UInt64 = 0
    /// When each device last wrote its head.
    private(set) var lastPuts: [Int: UInt64] = [:]
    /// Called when another device has changed what this device sees; -1 stands for all devices.
    var onArrival: (_ device: Int) -> Void = { _ in }
    /// Called with each head that was written, and its writer.
    var onHeadPut: (_ device: Int, _ name: String) -> Void = { _, _ in }

    private let timeline: Timeline
    private let tear: (Blob) -> Blob?
    private var chance: Chance
    /// One view per device of a folder. A server has a single one, once something is stored.
    private var views: [View] = []
    private var versions = 0
    private var backup = View()
    private var formerHeads: [(name: String, blob: Blob, time: UInt64)] = []

    init(_ number: Int, _ kind: Kind, seed: UInt64, timeline: Timeline, tear: @escaping (Blob) -> Blob?) {
        self.number = number
        self.kind = kind
        self.timeline = timeline
        self.tear = tear
        chance = Chance(seed: seed, stream: 100 + UInt64(number))
    }

    private func viewID(_ device: Int) -> Int { kind == .server ? 0 : device }

    private func view(of device: Int) -> View {
        let id = viewID(device)
        return id < views.count ? views[id] : View()
    }

    /// Adds a device. In a folder it gets an empty view, to which the objects of the others travel.
    func add(device: Int) {
        if kind == .server { return }
        views.append(View())
        for other in views.indices where other != device {
            for (name, object) in views[other].entries {
                if isWell { replicate(name, object, to: device) } else { carry(name, from: other) }
            }
        }
    }

    /// Gives the copy of a device the same view.
    func copyView(of device: Int, to copy: Int) {
        if kind == .folder { views[copy] = views[device] }
    }

    // MARK: Requests

    func check(_ client: Client, then reply: @escaping Reply<Void>) {
        request(client, writes: false, then: reply) { .success(()) }
    }

    func list(_ folder: String, _ client: Client, then reply: @escaping Reply<[(name: String, tag: String?)]>) {
        request(client, writes: false, then: reply) { [self] in
            let view = view(of: client.device)
            let isHeadless = folder == "h" && headlessUntil[client.device, default: 0] > timeline.now
            if isHeadless || isUnplugged(client) || strikes(.emptyListing) { return .success([]) }
            let prefix = folder + "/"
            let names = view.below(prefix).filter { $0.object.blob != nil }.map(\.name)
            // A device that sees one of an account's two names enters another account, which is no matter of sync.
            let isPartial = strikes(.partialListing) && folder != "a"
            let shown = names.filter { _ in !(isPartial && chance.happens(0.3)) }.map {
                String($0.dropFirst(prefix.utf8.count))
            }
            return .success(told(shown, of: folder, client).map { ($0, view[prefix + $0].flatMap(tag)) })
        }
    }

    /// The version that the storage reports for an object; `nil` if it reports none.
    private func tag(of object: Object) -> String? {
        switch tags {
        case .none: nil
        case .right, .stuck: "\(object.tag)"
        case .late: timeline.now - writtenAt[object.version, default: 0] < 2 * second ? nil : "\(object.tag)"
        case .restless: "\(object.tag) \(chance.below(2))"
        }
    }

    /// A listing as the storage returns it, perhaps an old one, perhaps with repeated names.
    private func told(_ names: [String], of folder: String, _ client: Client) -> [String] {
        guard agesListings || repeatsListings, folder != "a" else { return names }
        let view = "\(viewID(client.device)) \(folder)"
        if agesListings, chance.happens(0.2), let former = formerListings[view] { return former }
        if chance.happens(0.3) { formerListings[view] = names }
        return repeatsListings ? names + names.filter { _ in chance.happens(0.3) } : names
    }

    func get(_ name: String, _ client: Client, then reply: @escaping Reply<Blob?>) {
        getTagged(name, client) { reply($0.map { $0?.blob }) }
    }

    /// Reads an object with the version that the storage reports for it.
    func getTagged(_ name: String, _ client: Client, then reply: @escaping Reply<(blob: Blob, tag: String?)?>) {
        request(client, writes: false, then: reply) { [self] in
            if isUnplugged(client) { return .success(nil) }
            guard let object = view(of: client.device)[name], let blob = object.blob else { return .success(nil) }
            return .success(read(name, object, blob).map { ($0, tag(of: object)) })
        }
    }

    private func read(_ name: String, _ object: Object, _ blob: Blob) -> Blob? {
        if name.utf8.first == UInt8(ascii: "a") { return blob }
        if strikes(.tornRead) { return tear(blob) }
        if strikes(.stalePart), let former = object.former { return former }
        return blob
    }

    /// Reads everything below a folder, or the objects with these names, in one request.
    /// - Parameter revision: the revision that the caller has seen. If it is the present one, no objects are returned.
    func getAll(
        below folder: String? = nil, named names: [String] = [], unless revision: Int? = nil, _ client: Client,
        then reply: @escaping Reply<([(name: String, blob: Blob)]?, revision: Int?)>
    ) {
        request(client, writes: false, then: reply) { [self] in
            let view = view(of: client.device)
            let current = view.revision
            if revision == current { return .success((nil, current)) }
            if isUnplugged(client) || folder != nil && strikes(.emptyListing) { return .success(([], nil)) }
            let isPartial = folder != nil && strikes(.partialListing)
            var found: [(name: String, blob: Blob)] = []
            func add(_ name: String, _ object: Object?) {
                if isPartial, chance.happens(0.3) { return }
                if let object, let blob = object.blob, let blob = read(name, object, blob) {
                    found.append((name, blob))
                }
            }
            if let folder { for (name, object) in view.below(folder) { add(name, object) } }
            for name in names { add(name, view[name]) }
            let isTrue =
                faultProfile.rate(.tornRead) + faultProfile.rate(.stalePart) + faultProfile.rate(.partialListing) == 0
            return .success((found, isTrue ? current : nil))
        }
    }

    func put(_ name: String, _ blob: Blob, _ client: Client, then reply: @escaping Reply<Void>) {
        request(client, writes: true, then: reply) { [self] in
            if isUnplugged(client) { return .failure(RemoteError(.unavailable, "the drive is not there")) }
            if strikes(.full) { return .failure(RemoteError(.full, "no space left")) }
            if kind == .server, strikes(.latePut) {
                delay(chance.time(second, 2 * hour)) { [self] in store(name, blob, client) }
                return .failure(RemoteError(.unavailable, "timed out"))
            }
            if kind == .server, strikes(.tornPut), losesObjects || view(of: client.device)[name]?.blob == nil {
                if let torn = tear(blob) { store(name, torn, client) }
                return .failure(RemoteError(.unavailable, "the connection was lost"))
            }
            store(name, blob, client)
            if kind == .server, strikes(.duplicatePut) {
                delay(chance.time(second, hour)) { [self] in store(name, blob, client) }
            }
            return .success(())
        }
    }

    func create(_ name: String, _ blob: Blob, _ client: Client, then reply: @escaping Reply<Void>) {
        request(client, writes: true, then: reply) { [self] in
            if isUnplugged(client) { return .failure(RemoteError(.unavailable, "the drive is not there")) }
            if view(of: client.device)[name]?.blob == nil { store(name, blob, client) }
            return .success(())
        }
    }

    func delete(_ name: String, _ client: Client, then reply: @escaping Reply<Void>) {
        request(client, writes: true, then: reply) { [self] in
            if isUnplugged(client) || strikes(.ignoredDelete) { return .success(()) }
            let former = view(of: client.device)[name]?.blob
            store(name, nil, client)
            if let former, strikes(.undoneDelete) {
                delay(chance.time(second, hour)) { [self] in store(name, former, client) }
            }
            return .success(())
        }
    }

    func strikes(_ fault: Fault) -> Bool { faultProfile.strikes(fault, &chance) }

    func isCut(_ client: Client) -> Bool { cutUntil[client.device, default: 0] > timeline.now }

    private func isUnplugged(_ client: Client) -> Bool { unpluggedUntil[client.device, default: 0] > timeline.now }

    /// Sends a request, applies its effect, and answers it.
    func request<T>(
        _ client: Client, writes: Bool, then reply: @escaping Reply<T>, _ effect: @escaping () -> Result<T, RemoteError>
    ) {
        requests += 1
        guard client.isAlive else { return timeline.after(0) { reply(.failure(.dead)) } }
        if let writesLeft = client.deathAfter, writes {
            client.deathAfter = writesLeft - 1
            if writesLeft == 0 {
                // The process dies, with the request sent or not, and without an answer.
                if chance.happens(0.5) { timeline.after(chance.latency()) { _ = effect() } }
                timeline.after(0) {
                    client.onDeath()
                    reply(.failure(.dead))
                }
                return
            }
        }
        switch faultProfile.fate(isCut: isCut(client), &chance) {
        case .lost: timeline.after(10 * second) { reply(.failure(.unanswered)) }
        case .refused(let retryAfter, let wait):
            timeline.after(wait) { reply(.failure(RemoteError(.unavailable, "busy", retryAfter: retryAfter))) }
        case .heard(let latency, let wait, let isAnswerLost):
            timeline.after(latency) { [timeline] in
                let result = effect()
                timeline.after(wait) {
                    if isAnswerLost { return reply(.failure(.unanswered)) }
                    reply(client.isAlive ? result : .failure(.dead))
                }
            }
        }
    }

    /// Applies an effect later, or when the remote heals.
    func delay(_ duration: UInt64, _ effect: @escaping () -> Void) {
        delays += 1
        let number = delays
        late[number] = effect
        timeline.after(duration) { [self] in late.removeValue(forKey: number)?() }
    }

    // MARK: Objects

    private func store(_ name: String, _ blob: Blob?, _ client: Client) {
        let view = viewID(client.device)
        versions += 1
        if views.isEmpty { views = [View()] }
        let former = views[view][name]
        let formerTag = tags == .stuck && !isWell && chance.happens(0.3) ? former?.tag : nil
        views[view][name] = Object(blob: blob, former: former?.blob, version: versions, formerTag: formerTag)
        if tags == .late { writtenAt[versions] = timeline.now }
        views[view].revision += 1
        if name.utf8.first == UInt8(ascii: "h"), let blob {
            formerHeads.append((name, blob, timeline.now))
            if formerHeads.count > 64 { formerHeads.removeFirst() }
            noteHead(name, by: client)
        }
        if kind == .folder { carry(name, from: view) } else { onArrival(-1) }
    }

    /// Records that a device has published.
    func noteHead(_ name: String, by client: Client) {
        headPuts += 1
        lastHeadPut = timeline.now
        lastPuts[client.device] = timeline.now
        onHeadPut(client.device, name)
    }

    /// Delivers an object to all other views, to each after a while.
    private func carry(_ name: String, from view: Int) {
        if isCarriedByHand { return }
        for other in views.indices where other != view {
            let longest = isWell ? 10 * second : 30 * minute
            timeline.after(chance.time(second, longest)) { [self] in arrive(name, from: view, to: other) }
        }
    }

    private func arrive(_ name: String, from view: Int, to other: Int) {
        guard let object = views[view][name] else { return }
        let paused = max(cutUntil[view, default: 0], cutUntil[other, default: 0])
        if paused > timeline.now {
            return timeline.after(paused - timeline.now + second) { [self] in arrive(name, from: view, to: other) }
        }
        replicate(name, object, to: other)
    }

    /// Copies what is below a folder from one device's view to another's, at once.
    func carryAll(below folder: String, from view: Int, to other: Int) {
        for (name, object) in views[view].below(folder) { replicate(name, object, to: other) }
    }

    private func replicate(_ name: String, _ object: Object, to other: Int) {
        if let there = views[other][name], there.version >= object.version { return }
        views[other][name] = object
        views[other].revision += 1
        onArrival(other)
    }

    // MARK: Faults

    /// Delivers everything that is on its way, and ends all faults.
    func heal() {
        isWell = true
        for number in late.keys.sorted() { late.removeValue(forKey: number)?() }
        faultProfile = .fair
        (repeatsListings, agesListings) = (false, false)
        cutUntil = [:]
        unpluggedUntil = [:]
        cluster?.heal()
        for view in views.indices {
            for (name, object) in views[view].entries {
                for other in views.indices where other != view { replicate(name, object, to: other) }
            }
        }
    }

    /// Removes everything, as if a user had emptied the remote.
    func empty() {
        for view in views.indices { views[view].entries = [] }
        reviseAll()
    }

    /// Returns what restores the remote to its present content, as from a backup.
    func restoration() -> () -> Void {
        let saved = views.map(\.entries)
        return { [self] in
            for (view, entries) in zip(views.indices, saved) { views[view].entries = entries }
            reviseAll()
        }
    }

    private func reviseAll() { for view in views.indices { views[view].revision += 1 } }

    func loseObject(_ prefix: String) {
        reviseAll()
        for view in views.indices {
            let names = views[view].below(prefix).map(\.name)
            if let name = names.randomElement(using: &chance) { views[view][name] = nil }
        }
    }

    func rollBackObject() {
        reviseAll()
        for view in views.indices {
            let names = views[view].below("h/").filter { $0.object.former != nil }.map(\.name)
            guard let name = names.randomElement(using: &chance), let former = views[view][name]?.former else {
                continue
            }
            versions += 1
            views[view][name] = Object(blob: former, former: nil, version: versions)
        }
    }

    /// Makes a backup of the remote.
    func backUp() {
        cluster?.backUp()
        if kind == .server { backup = view(of: 0) }
    }
    func restoreBackup() {
        if kind == .server, !backup.entries.isEmpty { views[0].entries = backup.entries }
        reviseAll()
    }

    /// Leaves an older version of a head, as some tools do. A cluster repeats a transaction instead.
    func leaveCopy(of index: Int? = nil) {
        if let cluster, let index { return cluster.askAgain(index) }
        guard !formerHeads.isEmpty else { return }
        reviseAll()
        let former = formerHeads[index ?? chance.below(formerHeads.count)]
        for view in views.indices {
            versions += 1
            let name = String(former.name.prefix(18)) + ".sync-conflict-\(versions)"
            views[view][name] = Object(blob: former.blob, former: nil, version: versions)
        }
    }

    /// The heads that the remote remembers, with their times. A cluster has an empty one per transaction.
    var rememberedHeads: [(name: String, time: UInt64)] {
        cluster.map { $0.recorded.map { _ in ("", 0) } } ?? formerHeads.map { ($0.name, $0.time) }
    }

    /// Leaves files that are none of the account's.
    func leaveJunk(_ names: [(String, Blob)]) {
        reviseAll()
        for view in views.indices {
            for (name, blob) in names { views[view][name] = Object(blob: blob, former: nil, version: 0) }
        }
    }

    /// Stores an object for all devices, as an attacker who holds the remote can.
    func plant(_ name: String, _ blob: Blob) {
        reviseAll()
        if views.isEmpty { views = [View()] }
        for view in views.indices {
            versions += 1
            views[view][name] = Object(blob: blob, former: nil, version: versions)
        }
    }

    /// The names that a device sees. In a cluster these are all keys.
    func names(seenBy device: Int) -> [String] {
        if let cluster { return cluster.model.rows.map { String(decoding: $0.key, as: UTF8.self) } }
        return view(of: device).entries.filter { $0.object.blob != nil }.map(\.name)
    }

    /// The objects that a device sees.
    func objects(seenBy device: Int) -> [(name: String, blob: Blob)] {
        view(of: device).entries.compactMap { name, object in object.blob.map { (name, $0) } }
    }

    /// Whether a device sees an object.
    func has(_ name: String, seenBy device: Int) -> Bool { view(of: device)[name]?.blob != nil }
}

extension RemoteError {
    fileprivate static let dead = RemoteError(.unavailable, "the process has ended")
    fileprivate static let unanswered = RemoteError(.unavailable, "no answer")
}
