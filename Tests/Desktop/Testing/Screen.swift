// SPDX-License-Identifier: Apache-2.0

internal import Foundation
public import SDBus
public import UbiquitousStoreTesting

/// A screen of its own, Xvfb's, with a session bus and the accessibility bus of at-spi2-core; gone when it is released.
@BusActor
public final class Screen {
    /// Whether the programs that a screen needs are installed.
    public nonisolated static let isAvailable =
        ["Xvfb", "dbus-daemon", "import"].allSatisfy { program in
            FileManager.default.isExecutableFile(atPath: "/usr/bin/\(program)")
        } && FileManager.default.isExecutableFile(atPath: "/usr/libexec/at-spi-bus-launcher")

    /// What a program needs in its environment to be on this screen.
    public private(set) var environment: [String: String]
    let directory: TemporaryDirectory
    private let server: ChildProcess
    private var session: ChildProcess?
    private var accessibility: BusConnection?

    /// Starts a screen and waits until programs can be on it.
    /// - Throws: `DeadlinePassed`, `StartFailure` or `BusError`.
    public static func start() async throws -> Screen {
        let screen = try Screen()
        try await screen.connect()
        return screen
    }

    private init() throws {
        directory = try TemporaryDirectory()
        let runtime = try directory.makeDirectory("run", mode: 0o700)
        server = try ChildProcess(
            ["Xvfb", "-displayfd", "1", "-screen", "0", "900x700x24", "-nolisten", "tcp"],
            output: (directory.path + "/display", directory.path + "/xvfb.log"))
        environment = ProcessInfo.processInfo.environment.merging([
            "XDG_RUNTIME_DIR": runtime, "XDG_CONFIG_HOME": directory.path + "/config", "HOME": directory.path,
            "DBUS_SESSION_BUS_ADDRESS": "unix:path=\(runtime)/bus", "GSK_RENDERER": "cairo", "GTK_A11Y": "atspi",
            "GSETTINGS_BACKEND": "memory", "LC_ALL": "C.UTF-8", "SWIFT_BACKTRACE": "enable=no",
        ]) { $1 }
        environment["WAYLAND_DISPLAY"] = nil
    }

    private func connect() async throws {
        try await eventually("the screen is there") {
            let number = try String(contentsOfFile: directory.path + "/display", encoding: .utf8)
            guard number.hasSuffix("\n") else { return false }
            environment["DISPLAY"] = ":" + number.trimmingCharacters(in: .whitespacesAndNewlines)
            return true
        }
        let address = environment["DBUS_SESSION_BUS_ADDRESS"] ?? ""
        session = try ChildProcess(
            ["dbus-daemon", "--session", "--nofork", "--nopidfile", "--address=\(address)"], environment: environment,
            output: ("/dev/null", directory.path + "/bus.log"))
        var bus: BusConnection?
        // Its socket is there before it listens.
        try await eventually("the session bus takes connections") {
            bus = try? BusConnection.open(.address(address), description: "screen")
            return bus != nil
        }
        guard let bus else { throw NotStarted() }
        let accessible = try await bus.call("org.a11y.Bus", "/org/a11y/bus", "org.a11y.Bus", "GetAddress") {
            try $0.readString()
        }
        accessibility = try BusConnection.open(.address(accessible), description: "accessibility")
    }

    /// Starts a program on this screen.
    public func start(_ arguments: [String], environment more: [String: String] = [:]) throws -> ChildProcess {
        try ChildProcess(
            arguments, environment: environment.merging(more) { $1 },
            output: (directory.path + "/programs.log", directory.path + "/programs.log"))
    }

    /// What the programs have printed.
    public var log: String { (try? String(contentsOfFile: directory.path + "/programs.log", encoding: .utf8)) ?? "" }

    /// The desktop: everything that programs show is below it.
    public var desktop: Accessible {
        get throws {
            Accessible(bus: try connection, name: "org.a11y.atspi.Registry", path: "/org/a11y/atspi/accessible/root")
        }
    }

    private var connection: BusConnection {
        get throws {
            guard let accessibility else { throw NotStarted() }
            return accessibility
        }
    }

    private struct NotStarted: Error {}

    /// Presses keys, one after the other, as a keyboard does.
    public func press(_ keys: Key...) async throws {
        for key in keys {
            try await connection.call(
                "org.a11y.atspi.Registry", "/org/a11y/atspi/registry/deviceeventcontroller",
                "org.a11y.atspi.DeviceEventController", "GenerateKeyboardEvent",
                build: {
                    try $0.append(key.rawValue)
                    try $0.append("")
                    try $0.append(UInt32(3))
                }, decode: { _ in })
        }
    }

    /// A key by its keysym.
    public enum Key: Int32, Sendable {
        case space = 0x20
        case down = 0xff54
        case enter = 0xff0d
        case tab = 0xff09
    }

    /// Saves a picture of the screen as PNG.
    public func save(_ file: String) async throws {
        let picture = try start(["import", "-window", "root", file])
        _ = try await picture.finish()
    }

    /// The color of a pixel, as `#RRGGBB`.
    public func color(x: Int, y: Int) async throws -> String {
        let file = directory.path + "/pixel-\(UUID().uuidString)"
        let crop = "1x1+\(x)+\(y)"
        let pixel = try start(["import", "-window", "root", "-crop", crop, "-depth", "8", "rgb:\(file)"])
        _ = try await pixel.finish()
        let bytes = try Data(contentsOf: URL(filePath: file))
        return "#" + bytes.map { String(format: "%02X", $0) }.joined()
    }
}
