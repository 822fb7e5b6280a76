// SPDX-License-Identifier: Apache-2.0

internal import ManagedDefaults
internal import PropertyList

/// What a process knows of its user's domains: a copy of each layer, managed settings, arguments, registered values,
/// and the search lists that are flattened from them.
struct DefaultsState {
    var layers: [SearchList.Layer: LayerCopy] = [:]
    /// The layers whose writes the link was told of but has not handled yet.
    var toBeSent: Set<SearchList.Layer> = []
    var managed: [Text: ManagedDomain] = [:]
    var argument: [Text: Value]
    var registration: [Text: Value]
    var boxes = SearchBoxes()
    var waiters = Waiters()
    /// The writes that were taken back and not logged yet.
    var refusals: [SearchList.Layer: Refusals] = [:]
    /// The app's own domain, if keys of it may roam.
    var roaming: [Text: Roaming] = [:]
    /// When ended processes had set what this one has delivered to stores, by domains and keys.
    var delivered: [Text: [Text: Int64]] = [:]
    /// Whether this process has asked once whether the user is signed in.
    var hasAskedForAccount = false

    init(argument: [Text: Value], registration: [Text: Value]) {
        (self.argument, self.registration) = (argument, registration)
    }

    /// Gives a list everything that is known of a domain.
    func fill(_ list: inout SearchList, _ domain: Text) {
        for isHost in [true, false] {
            let layer = SearchList.Layer(of: domain, isHost: isHost)
            _ = list.replace(layer, by: layers[layer]?.visible ?? [:])
        }
        let managed = managed[domain] ?? ManagedDomain()
        _ = list.replace(.forced(domain), by: managed.forced)
        _ = list.replace(.recommended(domain), by: managed.recommended)
        _ = list.lock(domain, managed.locked)
    }

    /// Whether a domain may have a value of its own for a key: before the service's answer, its values are unknown.
    func mayHave(_ key: Text, _ domain: Text) -> Bool {
        let layer = layers[.domain(domain)]
        return layer?.generation == nil || layer?.visible[key] != nil
    }

    /// Returns a domain's writes that the service has not acknowledged.
    ///
    /// - Parameter now: the time of keys that roam and of which it isn't known when they were set, in microseconds since
    ///   1970.
    func pendingWrites(of domain: Text, now: Int64) -> [Outbox.Write] {
        [false, true].flatMap { isHost -> [Outbox.Write] in
            guard let copy = layers[.init(of: domain, isHost: isHost)] else { return [] }
            let whole = copy.keysOfWhole
            return copy.pending.map { key, value in
                Outbox.Write(
                    key: key, value: value, isHost: isHost,
                    isOwn: !isHost && (whole.contains(key) || roaming[domain]?.roams(key) == true),
                    time: copy.time(key), generation: copy.known(key), unanswered: copy.unanswered(key))
            }
        } + (roaming[domain]?.pendingWrites(time: now) ?? [])
    }
}

/// The writes of a layer that the service has refused for one reason. Many may be refused in a row, so they share a line.
struct Refusals {
    private(set) var keys: Set<Text> = []
    let reason: String
    /// Whether they will be logged in a moment.
    var isAwaited = false

    init(_ reason: String) { self.reason = reason }

    mutating func add(_ more: some Sequence<Text>) { keys.formUnion(more) }

    func log() {
        let (verb, object) = keys.count == 1 ? ("was", "it") : ("were", "them")
        logDefaults(keys, "\(verb) reverted, because the service rejected \(object): \(reason)")
    }
}

/// The search boxes that are in use, and the former values that their observers know.
struct SearchBoxes {
    private struct Entry {
        weak var box: SearchBox?
        /// Values before changes that the store has not announced yet.
        var untold: [Text: Value?] = [:]
    }

    private var entries: [ObjectIdentifier: Entry] = [:]

    /// The boxes that are in use.
    var present: [SearchBox] { entries.values.compactMap(\.box) }

    mutating func insert(_ box: SearchBox) { entries[ObjectIdentifier(box)] = Entry(box: box) }

    mutating func remove(_ box: ObjectIdentifier) { entries[box] = nil }

    /// Keeps the former values of keys whose changes the store will announce.
    mutating func keep(_ changes: [SearchList.Change], in box: SearchBox) {
        for change in changes {
            entries[ObjectIdentifier(box)]?.untold.merge([change.key: change.old]) { first, _ in first }
        }
    }

    /// Removes the former value of a key whose change is announced now.
    /// - Returns: the value that observers know; `nil` if they know the present one.
    mutating func announced(_ key: Text, in box: SearchBox) -> Value?? {
        entries[ObjectIdentifier(box)]?.untold.removeValue(forKey: key)
    }
}

extension SearchList.Layer {
    /// Makes a layer of the service: a domain's for this host, or for every host.
    init(of domain: Text, isHost: Bool) { self = isHost ? .host(domain) : .domain(domain) }

    /// The domain of a layer of the service, and whether the layer is for this host; `nil` for other layers.
    var place: LayerAddress? {
        switch self {
        case .host(let domain): LayerAddress(domain, isHost: true)
        case .domain(let domain): LayerAddress(domain)
        default: nil
        }
    }
}
