// SPDX-License-Identifier: Apache-2.0

internal import SDBus

/// An object on a screen as assistive technology sees it: AT-SPI's `org.a11y.atspi.Accessible`.
@BusActor
struct Accessible {
    let bus: BusConnection
    let name: String
    let path: String

    private nonisolated static let interface = "org.a11y.atspi.Accessible"

    /// Returns the object's children.
    func children() async throws -> [Accessible] {
        let places = try await bus.call(name, path, Self.interface, "GetChildren") { message in
            var places: [(String, String)] = []
            guard try message.enterContainer("a", "(so)" as StaticString) else { return places }
            while try message.enterContainer("r", "so" as StaticString) {
                places.append((try message.readString(), try message.readString()))
                try message.exitContainer()
            }
            return places
        }
        return places.map { Accessible(bus: bus, name: $0.0, path: $0.1) }
    }

    /// Does the object's first action, as assistive technology does: presses a button.
    func act() async throws {
        try await bus.call(
            name, path, "org.a11y.atspi.Action", "DoAction", build: { try $0.append(Int32(0)) }, decode: { _ in })
    }

    /// Returns where the object's upper and lower edges are in its window.
    func edges() async throws -> ClosedRange<Int32> {
        let numbers = try await bus.call(
            name, path, "org.a11y.atspi.Component", "GetExtents", build: { try $0.append(UInt32(1)) },
            decode: { message -> [Int32] in
                guard try message.enterContainer("r", "iiii" as StaticString) else { return [] }
                return try (0..<4).map { _ in try message.readInt32() }
            })
        return numbers.count == 4 ? numbers[1]...numbers[1] + max(0, numbers[3]) : 0...0
    }

    /// Asks the object for its own properties.
    func element() async throws -> Element {
        async let label = bus.call(
            name, path, "org.freedesktop.DBus.Properties", "Get",
            build: {
                try $0.append(Self.interface)
                try $0.append("Name")
            },
            decode: { message in
                guard try message.enterVariant() else { return "" }
                return try message.readString()
            })
        async let role = bus.call(name, path, Self.interface, "GetRole") { try $0.readUInt32() }
        async let states = bus.call(name, path, Self.interface, "GetState") { try Element.States($0) }
        return Element(
            program: name, path: path, role: .init(rawValue: try await role), label: try await label,
            states: try await states)
    }

    /// Returns the elements in the cache of the object's program, by path, with a single call.
    func cached() async throws -> [String: Element] {
        try await bus.call(name, "/org/a11y/atspi/cache", "org.a11y.atspi.Cache", "GetItems") { message in
            var elements: [String: Element] = [:]
            guard try message.enterContainer("a", "((so)(so)(so)iiassusau)" as StaticString) else { return elements }
            while try message.enterContainer("r", "(so)(so)(so)iiassusau" as StaticString) {
                let element = try Element(message)
                elements[element.path] = element
                try message.exitContainer()
            }
            return elements
        }
    }
}

/// One element of a screen.
struct Element: Sendable {
    /// The bus name of its program.
    let program: String
    let path: String
    let role: Role
    let label: String
    let states: States

    /// The kind of element, as AT-SPI's number.
    struct Role: RawRepresentable, Equatable, Sendable {
        let rawValue: UInt32
        static let listItem = Role(rawValue: 32)
        static let tab = Role(rawValue: 37)
        static let button = Role(rawValue: 43)
        static let scrollBar = Role(rawValue: 48)

        /// Whether its children needn't be read.
        var isWhole: Bool { [.tab, .button, .scrollBar].contains(self) }
    }

    /// The lower half of AT-SPI's states.
    struct States: OptionSet, Sendable {
        let rawValue: UInt32
        static let active = States(rawValue: 1 << 1)
        /// Whether a switch is on.
        static let checked = States(rawValue: 1 << 4)
        /// Whether a tab's page is shown.
        static let selected = States(rawValue: 1 << 23)
        static let focused = States(rawValue: 1 << 12)
        static let sensitive = States(rawValue: 1 << 24)
    }
}

extension Element {
    /// Reads an entry of a cache: the object, its program, its parent, its index and number of children, interfaces,
    /// label, role, description and states.
    fileprivate init(_ message: Message) throws(BusError) {
        (program, path) = try Self.readPlace(message)
        for _ in 0..<2 { _ = try Self.readPlace(message) }
        for _ in 0..<2 { _ = try message.readInt32() }
        _ = try message.readStrings()
        label = try message.readString()
        role = Role(rawValue: try message.readUInt32())
        _ = try message.readString()
        states = try States(message)
    }

    private static func readPlace(_ message: Message) throws(BusError) -> (program: String, path: String) {
        guard try message.enterContainer("r", "so" as StaticString) else { return ("", "") }
        let place = (try message.readString(), try message.readString())
        try message.exitContainer()
        return place
    }
}

extension Element.States {
    fileprivate init(_ message: Message) throws(BusError) {
        guard try message.enterContainer("a", "u" as StaticString) else {
            self = []
            return
        }
        rawValue = try message.readUInt32()
        while !(try message.isAtEnd(whole: false)) { _ = try message.readUInt32() }
        try message.exitContainer()
    }
}
