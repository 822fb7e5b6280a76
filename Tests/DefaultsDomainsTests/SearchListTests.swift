// SPDX-License-Identifier: Apache-2.0

import DefaultsDomains
import ManagedDefaults
import PropertyList
import SeededRandom
import Testing

struct SearchListTests {
    private let suites: [Text] = ["one", "two"]
    private let global = SearchList.globalDomain

    private func list() -> SearchList {
        var list = SearchList(own: "own")
        _ = list.search(suites)
        return list
    }

    @Test func `the first layer with the key wins, whatever the type of its value`() {
        let order: [SearchList.Layer] = [
            .forced("own"), .forced(global), .argument, .ubiquitous, .host("own"), .domain("own"), .forced("one"),
            .host("one"), .domain("one"), .forced("two"), .host("two"), .domain("two"), .host(global), .domain(global),
            .recommended("own"), .recommended(global), .registration,
        ]
        var list = list()
        #expect(list.layers == order)
        for (index, layer) in order.enumerated().reversed() {
            let value: Value = index.isMultiple(of: 2) ? .integer(Int64(index)) : .string(Text("\(index)"))
            let changes = list.change(layer, ["key": value])
            #expect(changes.map(\.new) == [value] && list.found["key"]?.layer == layer)
        }
        #expect(list.all("key").map(\.layer) == order)
    }

    @Test func `a change below the layer that wins changes nothing`() {
        var list = list()
        _ = list.change(.argument, ["key": .integer(1)])
        #expect(list.change(.domain("own"), ["key": .integer(2)]).isEmpty)
        #expect(list.change(.argument, ["key": .none]) == [.init(key: "key", old: .integer(1), new: .integer(2))])
    }

    @Test func `a value that is the same in the next layer is no change`() {
        var list = list()
        _ = list.replace(.domain("own"), by: ["key": .integer(1)])
        _ = list.replace(.domain(global), by: ["key": .integer(1)])
        #expect(list.replace(.domain("own"), by: [:]).isEmpty && list.found["key"]?.layer == .domain(global))
    }

    @Test func `a lock leaves what is forced, recommended and registered`() {
        var list = list()
        _ = list.replace(.domain("own"), by: ["secret.a": .integer(5), "other": .integer(5)])
        _ = list.replace(.argument, by: ["secret.a": .integer(2)])
        _ = list.replace(.registration, by: ["secret.a": .integer(9)])
        let changes = list.lock("own", KeyPatterns(["secret.*"]))
        #expect(changes == [.init(key: "secret.a", old: .integer(2), new: .integer(9))])
        #expect(list.isForced("secret.a") && !list.isForced("other") && list["other"] == .integer(5))
        _ = list.replace(.recommended("own"), by: ["secret.a": .integer(8)])
        #expect(list["secret.a"] == .integer(8))
        _ = list.replace(.forced("own"), by: ["secret.a": .integer(1)])
        #expect(list["secret.a"] == .integer(1) && list.all("secret.a").count == 3)
    }

    @Test func `a suite's lock hides the suite's values only`() {
        var list = list()
        _ = list.replace(.domain("one"), by: ["key": .integer(1)])
        _ = list.replace(.domain("two"), by: ["key": .integer(2)])
        _ = list.lock("one", KeyPatterns(["key"]))
        #expect(list["key"] == .integer(2) && !list.isForced("key") && list.isForced("key", in: "one"))
    }

    @Test func `a suite that is not searched any more is not seen, and comes back with what it has`() {
        var list = list()
        _ = list.replace(.domain("two"), by: ["key": .integer(2)])
        #expect(list.search(["one"]) == [.init(key: "key", old: .integer(2), new: nil)])
        #expect(list.search(suites) == [.init(key: "key", old: nil, new: .integer(2))])
    }

    @Test(arguments: 0..<20)
    func `the flattened dictionary is what a search of each layer finds`(seed: UInt64) {
        var random = SplitMix(seed: seed)
        var (list, slow) = (list(), Slow(layers: list().layers))
        for _ in 0..<300 {
            let layer = list.layers.randomElement(using: &random)!
            let key = Text(["a", "b", "c.1", "c.2"].randomElement(using: &random)!)
            let value: Value? = Bool.random(using: &random) ? .integer(Int64.random(in: 0..<3, using: &random)) : nil
            let before = slow.flat
            let changes: [SearchList.Change]
            switch Int.random(in: 0..<8, using: &random) {
            case 0:
                let values = value.map { [key: $0] } ?? [:]
                changes = list.replace(layer, by: values)
                slow.contents[layer] = values
            case 1:
                let patterns = Bool.random(using: &random) ? KeyPatterns(["c.*"]) : .none
                changes = list.lock("own", patterns)
                slow.lock = patterns
            default:
                changes = list.change(layer, [key: value])
                slow.contents[layer, default: [:]][key] = value
            }
            #expect(list.found.mapValues(\.value) == slow.flat)
            let keys = Set(before.keys).union(slow.flat.keys).filter { before[$0] != slow.flat[$0] }
            #expect(Set(changes.map(\.key)) == keys)
            #expect(changes.allSatisfy { $0.old == before[$0.key] && $0.new == slow.flat[$0.key] })
        }
    }

    /// The obvious version.
    private struct Slow {
        let layers: [SearchList.Layer]
        var contents: [SearchList.Layer: [Text: Value]] = [:]
        var lock = KeyPatterns.none

        var flat: [Text: Value] {
            var flat: [Text: Value] = [:]
            for layer in layers {
                for (key, value) in contents[layer] ?? [:] where flat[key] == nil && !hides(key, layer) {
                    flat[key] = value
                }
            }
            return flat
        }

        private func hides(_ key: Text, _ layer: SearchList.Layer) -> Bool {
            switch layer {
            case .forced("own"), .forced("NSGlobalDomain"), .recommended, .registration: false
            default: lock.contains(key)
            }
        }
    }
}
