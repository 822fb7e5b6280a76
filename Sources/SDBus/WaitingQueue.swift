// SPDX-License-Identifier: Apache-2.0

/// A queue from whose front elements are taken without moving the rest: thousands of calls may wait.
package struct WaitingQueue<Element>: Sequence {
    private var entries: [Element?] = []
    private var start = 0

    package init() {}

    package var isEmpty: Bool { start == entries.count }

    package var first: Element? { isEmpty ? nil : entries[start] }

    package mutating func append(_ element: Element) { entries.append(element) }

    package mutating func prepend(_ element: Element) {
        if start == 0 { return entries.insert(element, at: 0) }
        start -= 1
        entries[start] = element
    }

    package mutating func removeFirst() -> Element? {
        guard let first else { return nil }
        entries[start] = nil
        start += 1
        if start > entries.count / 2 {
            entries.removeSubrange(0..<start)
            start = 0
        }
        return first
    }

    /// Removes the first element that is wanted.
    package mutating func removeFirst(where isWanted: (Element) -> Bool) {
        guard let index = entries[start...].firstIndex(where: { $0.map(isWanted) == true }) else { return }
        if index == start { _ = removeFirst() } else { entries.remove(at: index) }
    }

    package func makeIterator() -> some IteratorProtocol<Element> {
        entries[start...].lazy.compactMap(\.self).makeIterator()
    }
}
