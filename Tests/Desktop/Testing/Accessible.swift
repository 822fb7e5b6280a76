// SPDX-License-Identifier: Apache-2.0

public import SDBus
internal import UbiquitousStoreTesting

/// Something on a screen as assistive technology sees it: AT-SPI's `org.a11y.atspi.Accessible`.
@BusActor
public struct Accessible {
    let bus: BusConnection
    let name: String
    let path: String

    private static let interface = "org.a11y.atspi.Accessible"

    /// What it is, in AT-SPI's words, such as `push button`.
    public func role() async throws -> String {
        try await bus.call(name, path, Self.interface, "GetRoleName") { try $0.readString() }
    }

    /// What it is called.
    public func label() async throws -> String {
        try await bus.call(
            name, path, "org.freedesktop.DBus.Properties", "Get",
            build: {
                try $0.append(Self.interface)
                try $0.append("Name")
            },
            decode: { message in
                guard try message.enterVariant() else { return "" }
                return try message.readString()
            })
    }

    /// What is in it.
    public func children() async throws -> [Accessible] {
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

    /// The first below it, in its order, whose label contains a text; `nil`: there is none.
    public func find(_ text: String, role: String? = nil) async throws -> Accessible? {
        // What goes while it is looked at is not there.
        for child in (try? await children()) ?? [] {
            guard let label = try? await child.label() else { continue }
            if label.contains(text) {
                guard let role else { return child }
                if (try? await child.role()) == role { return child }
            }
            if let found = try await child.find(text, role: role) { return found }
        }
        return nil
    }

    /// All labels below it, for messages of failed tests.
    public func labels() async -> [String] {
        var labels: [String] = []
        for child in (try? await children()) ?? [] {
            if let label = try? await child.label(), !label.isEmpty { labels.append(label) }
            labels += await child.labels()
        }
        return labels
    }
}
