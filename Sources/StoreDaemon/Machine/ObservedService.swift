// SPDX-License-Identifier: Apache-2.0

internal import SDBus

/// Another service of the machine, which may come and go, or be missing.
///
/// It is never started for this. Its state is read again after signals.
@BusActor
final class ObservedService {
    private let connection: BusConnection
    private let name: String
    private var owner: String?
    private var slots: [Slot] = []
    private var isStale = false
    private var reading: Task<Void, Never>?
    /// Called when the service appears, and when it disappears.
    private var onAppearance: @BusActor (_ isThere: Bool) -> Void = { _ in }

    /// Reads the service's state.
    var read: @BusActor () async -> Void = {}

    private static let bus = "org.freedesktop.DBus"
    /// How long to wait before reading again, because users may cause any number of signals.
    private static let rest = Duration.milliseconds(250)

    /// Whether the service runs.
    var isThere: Bool { owner != nil }

    /// A signal to follow.
    struct Signal {
        /// The end of its match rule.
        let rule: String
        /// Called after the signal.
        let action: @BusActor (Message) -> Void
    }

    init(_ name: String, on connection: BusConnection) { (self.name, self.connection) = (name, connection) }

    /// Reads the service's state soon. Requests that come meanwhile are served together afterwards.
    func readSoon() {
        isStale = true
        guard reading == nil else { return }
        reading = EventLoop.task { [weak self] in
            while let self, isStale {
                isStale = false
                await read()
                await EventLoop.pause(Self.rest)
            }
            self?.reading = nil
        }
    }

    /// Follows signals of the service, then whether it runs.
    /// - Parameter onAppearance: called when the service appears, and when it disappears.
    func follow(_ signals: [Signal], onAppearance: @escaping @BusActor (_ isThere: Bool) -> Void) async throws {
        self.onAppearance = onAppearance
        for followed in signals {
            slots.append(
                try await connection.addMatch("type='signal',sender='\(name)',\(followed.rule)") { [weak self] signal in
                    // The bus lets anybody send a signal that looks like the service's.
                    if let owner = self?.owner, signal.sender == owner { followed.action(signal) }
                })
        }
        let rule = "type='signal',sender='\(Self.bus)',interface='\(Self.bus)',member='NameOwnerChanged',arg0='\(name)'"
        slots.append(
            try await connection.addMatch(rule) { [weak self] signal in
                guard let arguments = try? (0..<3).map({ _ in try signal.readString() }) else { return }
                self?.note(owner: arguments[2])
            })
        note(owner: (try? await call(Self.bus, "/", Self.bus, "GetNameOwner", argument: name)) ?? "")
    }

    private func note(owner: String) {
        let next = owner.isEmpty ? nil : owner
        guard next != self.owner else { return }
        self.owner = next
        onAppearance(next != nil)
    }

    private func call(_ service: String, _ path: String, _ interface: String, _ member: String, argument: String)
        async throws -> String
    {
        try await connection.call(service, path, interface, member) {
            try $0.append(argument)
        } decode: {
            try $0.readString()
        }
    }

    /// Calls a method without arguments.
    func call<Value: Sendable>(
        _ path: String, _ interface: String, _ member: String, decode: @escaping @BusActor (Message) throws -> Value
    ) async throws -> Value {
        guard let owner else { throw BusError.disconnected("\(name) isn't running.") }
        return try await connection.call(owner, path, interface, member, decode: decode)
    }

    /// Reads a property.
    func property<Value: Sendable>(
        _ path: String, _ interface: String, _ property: String,
        decode: @escaping @BusActor (Message) throws -> Value
    ) async throws -> Value {
        guard let owner else { throw BusError.disconnected("\(name) isn't running.") }
        return try await connection.call(owner, path, "org.freedesktop.DBus.Properties", "Get") {
            try $0.append(interface)
            try $0.append(property)
        } decode: { answer in
            _ = try answer.enterVariant()
            return try decode(answer)
        }
    }

    /// Returns the end of a match rule for changes of an object's properties.
    static func changes(of path: String, _ interface: String, isNamespace: Bool = false) -> String {
        "\(isNamespace ? "path_namespace" : "path")='\(path)',interface='org.freedesktop.DBus.Properties',"
            + "member='PropertiesChanged',arg0='\(interface)'"
    }
}
