// SPDX-License-Identifier: Apache-2.0

internal import SDBus

/// What a screen showed at one time.
public struct Sight: Sendable {
    /// The elements in reading order, each with its parent's index.
    private var elements: [(element: Element, parent: Int?)] = []

    /// Reads everything below an element.
    ///
    /// A program's cache has all its elements, in one call, but doesn't say which of them are shown. So this asks each
    /// element for its children, unless they needn't be read.
    @BusActor
    init(below desktop: Accessible) async {
        for program in (try? await desktop.children()) ?? [] {
            await look(program, nil, known: (try? await program.cached()) ?? [:])
        }
    }

    @BusActor
    private mutating func look(_ place: Accessible, _ parent: Int?, known: [String: Element]) async {
        var element = known[place.path]
        // An element that disappears meanwhile is left out.
        if element == nil { element = try? await place.element() }
        guard let element else { return }
        let number = elements.count
        elements.append((element, parent))
        if element.role.isWhole { return }
        for child in (try? await place.children()) ?? [] { await look(child, number, known: known) }
    }

    /// Whether a label contains a text.
    public func has(_ text: String) -> Bool { elements.contains { $0.element.label.contains(text) } }

    /// Whether a label contains a text, in a window that keys reach.
    public func hasInFront(_ text: String) -> Bool {
        inFront.contains { elements[$0].element.label.contains(text) }
    }

    /// Whether a label is this text.
    public func shows(_ text: String) -> Bool { elements.contains { $0.element.label == text } }

    /// Whether a button with this text can be pressed.
    public func canPress(_ text: String) -> Bool {
        elements.contains {
            $0.element.role == .button && $0.element.label.hasSuffix(text) && $0.element.states.contains(.sensitive)
        }
    }

    /// Returns the button with this text.
    func button(_ text: String) -> Element? {
        elements.first { $0.element.role == .button && $0.element.label.hasSuffix(text) }?.element
    }

    /// Returns for each switch with this label whether it is on.
    public func areOn(_ label: String) -> [Bool] {
        elements.filter { $0.element.label == label }.map { $0.element.states.contains(.checked) }
    }

    /// All labels, for messages of failed tests.
    public var labels: String { elements.map(\.element.label).filter { !$0.isEmpty }.joined(separator: " | ") }

    /// The tab whose page is shown.
    public var selectedTab: String? {
        elements.first { $0.element.role == .tab && $0.element.states.contains(.selected) }?.element.label
    }

    /// The element with the keyboard focus, unless it is a text field. Inactive windows remember their last one.
    public var focus: Focus? {
        guard let number = focused else { return nil }
        let element = elements[number].element
        let rows = above(number).filter { $0.role == .listItem }
        return Focus(path: element.path, role: element.role, labels: [element.label] + rows.map(\.label))
    }

    /// The element with the keyboard focus, followed by those around it, up to its window.
    var focusedElements: [Element] { focused.map { [elements[$0].element] + above($0).dropLast() } ?? [] }

    private var focused: Int? {
        inFront.last { elements[$0].element.states.contains(.focused) }
    }

    /// The elements that keys reach: of the active window, or of all if none is active.
    private var inFront: some BidirectionalCollection<Int> {
        let isAnyActive = isAnyWindowActive
        return elements.indices.lazy.filter { !isAnyActive || isInActiveWindow($0) }
    }

    /// Whether a window is active: keys that are pressed reach it. Without a window manager, none is once a dialog has
    /// closed.
    public var isAnyWindowActive: Bool { elements.contains { $0.element.states.contains(.active) } }

    private func isInActiveWindow(_ number: Int) -> Bool { above(number).contains { $0.states.contains(.active) } }

    /// Returns an element's ancestors, the parent first.
    private func above(_ number: Int) -> [Element] {
        sequence(first: number) { elements[$0].parent }.dropFirst().map { elements[$0].element }
    }

    /// The element with the keyboard focus: its label, followed by those of the rows that contain it.
    public struct Focus: Equatable, Sendable {
        let path: String
        let role: Element.Role
        let labels: [String]
        var name: String { labels.first ?? "" }

        /// Whether the label of the element, or of its row, contains a text.
        public func isOn(_ text: String) -> Bool {
            // A button within a row counts only by its own label.
            (role == .button ? labels.prefix(1) : labels[...]).contains { $0.contains(text) }
        }

        /// Whether it is the tab of a page.
        public var isTab: Bool { role == .tab }
    }
}
