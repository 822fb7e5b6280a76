// SPDX-License-Identifier: Apache-2.0

// The layers of settings in their order, flattened into one dictionary, so that a read is one lookup. A change of a
// layer recomputes its keys and no others. This code receives layers, and knows no bus, thread or process.
//
//     1  managed (forced): own domain, then global      6  each suite: forced, this host, any host
//     2  arguments                                      7  global: this host, any host
//     3  ubiquitous: the app's synced store             8  recommended: own domain, then global
//     4  own domain, this host                          9  registration
//     5  own domain, any host

package import ManagedDefaults
package import PropertyList

/// The layers that a `UserDefaults` object searches, and what the search finds.
package struct SearchList: Sendable {
    /// A source of values.
    package enum Layer: Hashable, Sendable {
        /// Values that an administrator forces on a domain.
        case forced(Text)
        /// The settings on the program's command line.
        case argument
        /// Keys that live in the app's synced store.
        case ubiquitous
        /// A domain's values for this host only.
        case host(Text)
        /// A domain's values.
        case domain(Text)
        /// Values that an administrator recommends for a domain.
        case recommended(Text)
        /// Values that the app registered.
        case registration

        /// The layer in words, for users.
        package var words: String {
            switch self {
            case .forced(let domain): "forced in \(domain)"
            case .argument: "argument of the command line"
            case .ubiquitous: "synced store"
            case .host(let domain): "\(domain), this host"
            case .domain(let domain): "\(domain)"
            case .recommended(let domain): "recommended in \(domain)"
            case .registration: "registered"
            }
        }

        /// The file that a key's value in this layer comes from; `nil` if no administrator decides the layer.
        /// - Parameter managed: returns a domain's managed settings.
        package func source(of key: Text, in managed: (Text) -> ManagedDomain?) -> String? {
            switch self {
            case .forced(let domain): managed(domain)?.source(of: key, isRecommended: false)
            case .recommended(let domain): managed(domain)?.source(of: key, isRecommended: true)
            case .argument, .ubiquitous, .host, .domain, .registration: nil
            }
        }
    }

    /// The result of a search.
    package struct Found: Equatable, Sendable {
        /// The value.
        package var value: Value
        /// The first layer that has a value.
        package var layer: Layer
    }

    /// A change of a key's effective value.
    package struct Change: Equatable, Sendable {
        /// The key.
        package var key: Text
        /// The value before; `nil` if there was none.
        package var old: Value?
        /// The value after; `nil` if there is none.
        package var new: Value?

        /// Makes a change from its parts.
        package init(key: Text, old: Value?, new: Value?) {
            self.key = key
            self.old = old
            self.new = new
        }
    }

    /// The domain that every program searches.
    package static let globalDomain = ManagedFile.globalDomain

    /// The domain that the object reads and writes.
    package let own: Text
    /// The domains that are searched after it, in this order.
    package private(set) var suites: [Text] = []
    /// The layers, in the order of the search.
    package private(set) var layers: [Layer]
    /// Every key of the layers, with the result of its search.
    package private(set) var found: [Text: Found] = [:]
    private var contents: [Layer: [Text: Value]] = [:]
    private var locks: [Text: KeyPatterns] = [:]

    /// Makes a list in which every layer is empty.
    package init(own: Text) {
        self.own = own
        layers = Self.order(own, suites: [])
    }

    private static func order(_ own: Text, suites: [Text]) -> [Layer] {
        let layers: [Layer] =
            [.forced(own), .forced(globalDomain), .argument, .ubiquitous, .host(own), .domain(own)]
            + suites.flatMap { [.forced($0), .host($0), .domain($0)] }
            + [
                .host(globalDomain), .domain(globalDomain), .recommended(own), .recommended(globalDomain),
                .registration,
            ]
        return own == globalDomain ? layers.uniqued : layers
    }

    /// The domains whose layers are searched: the own one first, the global one last.
    package var domains: [Text] { ([own] + suites + [Self.globalDomain]).uniqued }

    // MARK: Reading

    /// The effective value of a key.
    package subscript(key: Text) -> Value? { found[key]?.value }

    /// Returns each layer's value of a key, in the order of the search, without the layers that a lock hides.
    package func all(_ key: Text) -> [Found] {
        layers.compactMap { layer in
            isHidden(key, in: layer) ? nil : contents[layer]?[key].map { Found(value: $0, layer: layer) }
        }
    }

    /// Returns the values of a key that a lock hides, in the order of the search.
    package func hidden(_ key: Text) -> [Found] {
        layers.compactMap { layer in
            isHidden(key, in: layer) ? contents[layer]?[key].map { Found(value: $0, layer: layer) } : nil
        }
    }

    /// Returns the values of a layer.
    package func contents(of layer: Layer) -> [Text: Value] { contents[layer] ?? [:] }

    /// Whether an administrator has locked a key of the own domain or of the global one.
    package func isLocked(_ key: Text) -> Bool {
        [own, Self.globalDomain].contains { locks[$0]?.contains(key) == true }
    }

    /// Whether an administrator decides about a key, by a forced value or a lock.
    package func isForced(_ key: Text) -> Bool {
        [own, Self.globalDomain].contains { isForced(key, in: $0) }
    }

    /// Whether an administrator decides about a key of a domain.
    package func isForced(_ key: Text, in domain: Text) -> Bool {
        contents[.forced(domain)]?[key] != nil || locks[domain]?.contains(key) == true
    }

    // MARK: Changing

    /// Replaces all values of a layer.
    /// - Returns: the keys whose effective values have changed.
    package mutating func replace(_ layer: Layer, by values: [Text: Value]) -> [Change] {
        let former = contents.updateValue(values, forKey: layer) ?? [:]
        guard layers.contains(layer) else { return [] }
        var keys = former.keys.filter { values[$0] != former[$0] }
        keys += values.keys.filter { former[$0] == nil }
        return update(keys)
    }

    /// Changes some keys of a layer; `nil` removes a key.
    /// - Returns: the keys whose effective values have changed.
    package mutating func change(_ layer: Layer, _ changes: [Text: Value?]) -> [Change] {
        for (key, value) in changes { contents[layer, default: [:]][key] = value }
        return layers.contains(layer) ? update(changes.keys) : []
    }

    /// Replaces the locks of a domain.
    /// - Returns: the keys whose effective values have changed.
    package mutating func lock(_ domain: Text, _ patterns: KeyPatterns) -> [Change] {
        guard locks.updateValue(patterns, forKey: domain) ?? .none != patterns else { return [] }
        return update(Array(everyKey))
    }

    /// Replaces the suites that are searched.
    /// - Returns: the keys whose effective values have changed.
    package mutating func search(_ suites: [Text]) -> [Change] {
        guard suites != self.suites else { return [] }
        self.suites = suites
        layers = Self.order(own, suites: suites)
        return update(Array(everyKey))
    }

    private var everyKey: Set<Text> { layers.reduce(into: Set(found.keys)) { $0.formUnion(contents(of: $1).keys) } }

    private mutating func update(_ keys: some Sequence<Text>) -> [Change] {
        var changes: [Change] = []
        for key in keys {
            let old = found[key]
            let new = search(key)
            guard old != new else { continue }
            found[key] = new
            if old?.value != new?.value { changes.append(Change(key: key, old: old?.value, new: new?.value)) }
        }
        return changes
    }

    private func search(_ key: Text) -> Found? {
        for layer in layers {
            if let value = contents[layer]?[key], !isHidden(key, in: layer) { return Found(value: value, layer: layer) }
        }
        return nil
    }

    /// Whether a lock makes the search skip a layer.
    private func isHidden(_ key: Text, in layer: Layer) -> Bool {
        let domain: Text?
        switch layer {
        case .forced(let name) where suites.contains(name): domain = nil
        case .forced, .recommended, .registration: return false
        case .host(let name), .domain(let name): domain = name
        case .argument, .ubiquitous: domain = nil
        }
        if locks.isEmpty { return false }
        return isLocked(key) || domain.flatMap { locks[$0] }?.contains(key) == true
    }
}

extension Array where Element: Hashable {
    /// The first of each of the equal elements.
    fileprivate var uniqued: [Element] {
        var seen: Set<Element> = []
        return filter { seen.insert($0).inserted }
    }
}
