// SPDX-License-Identifier: Apache-2.0

// Keys and the links between them. A key with a marker is a candidate if every other key with a marker that it leads to
// leads back to it: that is, if no other strongly connected component with a marker can be reached from its own.
// Tarjan's algorithm ("Depth-first search and linear graph algorithms", 1972) finds components after those that they
// lead to, so one pass is enough. This version has its own stack, because a chain of 65,536 links would be too deep for
// the thread's.

/// The graph of keys and their links.
struct KeyGraph {
    private var places: [KeyIdentifier: Int] = [:]
    private var keys: [KeyIdentifier] = []
    private var next: [[Int]] = []
    private var hasMarker: [Bool] = []
    private var components = Components()

    /// Makes the graph of the keys that have markers and of the links that count.
    init(_ markers: Set<KeyIdentifier>, _ links: [KeyLink]) {
        for marker in markers { hasMarker[place(of: marker)] = true }
        for link in links {
            let (first, second) = (place(of: link.first), place(of: link.second))
            next[first].append(second)
        }
        components = Components(next, hasMarker)
    }

    /// Returns the account's key; `nil` if there is no candidate.
    /// - Parameter excluded: a key that is not the account's.
    func account(replaced: Set<KeyIdentifier>, except excluded: KeyIdentifier? = nil) -> KeyIdentifier? {
        let candidates = keys.indices.filter { hasMarker[$0] && !components.leadsElsewhere[components.of[$0]] }
            .map { keys[$0] }.filter { $0 != excluded }
        return candidates.filter { !replaced.contains($0) }.min() ?? candidates.min()
    }

    /// Whether a key has a marker, or leads to one that has.
    func leadsToMarker(from key: KeyIdentifier) -> Bool {
        guard let place = places[key] else { return false }
        let component = components.of[place]
        return components.leadsElsewhere[component] || components.hasMarker[component]
    }

    private mutating func place(of key: KeyIdentifier) -> Int {
        if let place = places[key] { return place }
        places[key] = keys.count
        keys.append(key)
        next.append([])
        hasMarker.append(false)
        return keys.count - 1
    }
}

/// The strongly connected components of a graph.
private struct Components {
    /// The component of each node.
    private(set) var of: [Int] = []
    /// Whether each component has a node with a marker.
    private(set) var hasMarker: [Bool] = []
    /// Whether each component leads to another one with a marker.
    private(set) var leadsElsewhere: [Bool] = []

    init() {}

    init(_ next: [[Int]], _ marked: [Bool]) {
        of = [Int](repeating: -1, count: next.count)
        var search = Search(next)
        for node in next.indices where search.order[node] < 0 {
            search.visit(node) { add($0, next, marked) }
        }
    }

    /// Adds a component, after all others that it leads to.
    private mutating func add(_ nodes: ArraySlice<Int>, _ next: [[Int]], _ marked: [Bool]) {
        let component = hasMarker.count
        for node in nodes { self.of[node] = component }
        var leads = false
        for other in nodes.flatMap({ next[$0] }).map({ of[$0] }) where other != component {
            leads = leads || hasMarker[other] || leadsElsewhere[other]
        }
        leadsElsewhere.append(leads)
        hasMarker.append(nodes.contains { marked[$0] })
    }

    /// The depth-first search.
    private struct Search {
        let next: [[Int]]
        /// When each node was first visited; -1 if it was not yet.
        var order: [Int]
        /// The earliest open node that each node leads back to.
        var low: [Int]
        var isOpen: [Bool]
        var open: [Int] = []
        var time = 0

        init(_ next: [[Int]]) {
            self.next = next
            order = [Int](repeating: -1, count: next.count)
            low = order
            isOpen = [Bool](repeating: false, count: next.count)
        }

        mutating func visit(_ root: Int, found: (ArraySlice<Int>) -> Void) {
            var path = [(node: root, edge: 0)]
            enter(root)
            while let (node, edge) = path.last {
                if edge < next[node].count {
                    path[path.count - 1].edge += 1
                    let successor = next[node][edge]
                    if order[successor] < 0 {
                        enter(successor)
                        path.append((successor, 0))
                    } else if isOpen[successor] {
                        low[node] = min(low[node], order[successor])
                    }
                } else {
                    path.removeLast()
                    if let parent = path.last { low[parent.node] = min(low[parent.node], low[node]) }
                    if low[node] == order[node] { close(node, found) }
                }
            }
        }

        private mutating func enter(_ node: Int) {
            (order[node], low[node], isOpen[node]) = (time, time, true)
            time += 1
            open.append(node)
        }

        private mutating func close(_ node: Int, _ found: (ArraySlice<Int>) -> Void) {
            guard let start = open.lastIndex(of: node) else { return }
            let component = open[start...]
            for member in component { isOpen[member] = false }
            found(component)
            open.removeSubrange(start...)
        }
    }
}
