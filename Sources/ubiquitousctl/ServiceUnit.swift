// SPDX-License-Identifier: Apache-2.0

internal import PlainText
internal import SDBus
internal import StoreBus
internal import UbiquitousStore

/// Asks systemd about the service when a call to it isn't answered.
///
/// The bus lets systemd start the service, but doesn't report a failure to the caller, which would wait for 25 s.
@BusActor
enum ServiceUnit {
    private nonisolated static let name = "ubiquitous-store.service"
    private nonisolated static let systemd = "org.freedesktop.systemd1"
    private static var timer: EventSource?
    /// The bus on which systemd can be asked.
    private static var bus: BusConnection?

    /// Ends the program with the reason if it waits for a service that can't start.
    static func watch(_ connection: ServiceConnection) {
        bus = connection.bus
        guard connection.owner == nil else { return timer = nil }
        timer = EventLoop.shared.after(.milliseconds(500)) {
            EventLoop.task {
                if connection.owner == nil, let failure = await failure() {
                    Progress.clear()
                    Output.complain(failure.description)
                    EventLoop.shared.exit(failure.outcome.rawValue)
                }
                watch(connection)
            }
        }
    }

    /// Returns why the service can't start; `nil` if it can or the reason is unknown.
    static func failure() async -> Failure? {
        guard let bus, let unit = await Unit(bus, name), let reason = unit.reason else { return nil }
        return Failure(
            .unreachable, "The service can't start: \(reason.clause).",
            advice: "See \"systemctl status ubiquitous-store\" and \"journalctl -u ubiquitous-store\".")
    }

    /// The service's unit, as systemd reports it.
    struct Unit {
        var load = "", active = "", sub = "", result = "", status = ""
        var exitStatus: Int32 = 0

        init(load: String, active: String, sub: String, result: String, status: String, exitStatus: Int32) {
            (self.load, self.active, self.sub) = (load, active, sub)
            (self.result, self.status, self.exitStatus) = (result, status, exitStatus)
        }

        fileprivate init?(_ bus: BusConnection, _ name: String) async {
            do {
                let path = try await bus.call(
                    systemd, "/org/freedesktop/systemd1", systemd + ".Manager", "LoadUnit", timeout: .seconds(2),
                    build: { try $0.append(name) }, decode: { try $0.readString() })
                func text(_ interface: String, _ property: String) async throws -> String {
                    try await get(bus, path, interface, property) { try $0.readString() }
                }
                load = try await text("Unit", "LoadState")
                active = try await text("Unit", "ActiveState")
                sub = try await text("Unit", "SubState")
                guard load == "loaded" else { return }
                result = try await text("Service", "Result")
                status = try await text("Service", "StatusText")
                exitStatus = try await get(bus, path, "Service", "ExecMainStatus") { try $0.readInt32() }
            } catch {
                return nil
            }
        }

        /// Why the service can't start, as the end of a sentence; `nil` if nothing is wrong.
        var reason: String? {
            if load == "not-found" { return localized("it isn't installed, as systemd knows no unit \(name)") }
            if load == "masked" {
                return localized("its unit is masked; \"systemctl unmask ubiquitous-store\" ends that")
            }
            guard active == "failed" || sub == "auto-restart" else { return nil }
            // The status of a service that did run is outdated.
            if !status.isEmpty, !status.hasPrefix("Serving") { return status }
            switch result {
            case "exit-code": return Self.exits[exitStatus]?.text ?? localized("it ended with \(exitStatus)")
            case "start-limit-hit":
                return localized(
                    "it was started too often in a short time; wait, or run \"systemctl reset-failed ubiquitous-store\""
                )
            case "timeout": return localized("it takes too long")
            case "oom-kill": return localized("there wasn't enough memory")
            default: return localized("its unit has failed (\(result))")
            }
        }

        /// Exit codes by systemd.exec(5).
        private static let exits: [Int32: Sentence] = [
            78: "its settings are invalid", 200: "its directory can't be entered", 203: "its program can't be run",
            217: "its user _ubiquitous-store doesn't exist",
            226: "a directory that its unit names is missing, or can't be mounted",
            233: "its runtime directory can't be made",
            238: "its state directory can't be made, as on a full or read-only disk",
        ]
    }

    private static func get<Result: Sendable>(
        _ bus: BusConnection, _ path: String, _ interface: String, _ property: String,
        _ read: @escaping @BusActor (Message) throws -> Result
    ) async throws -> Result {
        try await bus.call(
            systemd, path, "org.freedesktop.DBus.Properties", "Get", timeout: .seconds(2),
            build: {
                try $0.append("\(systemd).\(interface)")
                try $0.append(property)
            },
            decode: {
                try $0.enterVariant()
                return try read($0)
            })
    }
}
