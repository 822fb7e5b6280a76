// SPDX-License-Identifier: Apache-2.0

internal import Foundation
public import SDBus
public import UbiquitousStoreTesting

/// A screen of Xvfb's, with a session bus and the accessibility bus of at-spi2-core. They end when it is released.
@BusActor
public final class Screen {
    /// Whether the programs that a screen needs are installed.
    public nonisolated static let isAvailable =
        ["Xvfb", "dbus-daemon", "import"].allSatisfy { program in
            FileManager.default.isExecutableFile(atPath: "/usr/bin/\(program)")
        } && FileManager.default.isExecutableFile(atPath: "/usr/libexec/at-spi-bus-launcher")

    /// The environment variables that put a program on this screen.
    public private(set) var environment: [String: String]
    let directory: TemporaryDirectory
    private let server: ChildProcess
    private var session: ChildProcess?
    private var accessibility: BusConnection?
    private var events: [Slot] = []
    private var changes = 0

    private let style: Style

    /// Starts a screen, and waits until programs can use it.
    /// - Throws: `DeadlinePassed`, `StartFailure` or `BusError`.
    public static func start(_ style: Style = .light) async throws -> Screen {
        let screen = try Screen(style)
        if style == .german { try await Translations.compile(into: screen.directory.path + "/locale") }
        try await screen.connect()
        return screen
    }

    private init(_ style: Style) throws {
        self.style = style
        directory = try TemporaryDirectory()
        let runtime = try directory.makeDirectory("run", mode: 0o700)
        server = try ChildProcess(
            ["Xvfb", "-displayfd", "1", "-screen", "0", style.size + "x24", "-nolisten", "tcp"],
            output: (directory.path + "/display", directory.path + "/xvfb.log"))
        environment = ProcessInfo.processInfo.environment.merging([
            "XDG_RUNTIME_DIR": runtime, "XDG_CONFIG_HOME": directory.path + "/config", "HOME": directory.path,
            "DBUS_SESSION_BUS_ADDRESS": "unix:path=\(runtime)/bus", "GSK_RENDERER": "cairo", "GTK_A11Y": "atspi",
            "GSETTINGS_BACKEND": "memory", "LC_ALL": "C.UTF-8", "SWIFT_BACKTRACE": "enable=no",
            "TEXTDOMAINDIR": directory.path + "/locale",
        ]) { $1 }.merging(style.environment) { $1 }
        environment["WAYLAND_DISPLAY"] = nil
        try style.configure(home: directory.path)
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
        // Its socket exists before it listens.
        try await eventually("the session bus takes connections") {
            bus = try? BusConnection.open(.address(address), description: "screen")
            return bus != nil
        }
        guard let bus else { throw NotStarted() }
        // Both buses start programs for this. On a slow machine their first start may fail.
        try await eventually("the accessibility bus is there") {
            let address = try? await bus.call("org.a11y.Bus", "/org/a11y/bus", "org.a11y.Bus", "GetAddress") {
                try $0.readString()
            }
            guard let address else { return false }
            accessibility = try BusConnection.open(.address(address), description: "accessibility")
            return true
        }
        let connection = try connection
        try await eventually("programs are asked to tell of changes") { (try? await listen(connection)) != nil }
    }

    /// Counts the events for assistive technology, which programs send only while a listener is registered.
    private func listen(_ connection: BusConnection) async throws {
        events = []
        for kind in ["Object", "Window", "Focus"] {
            let rule = "type='signal',interface='org.a11y.atspi.Event.\(kind)'"
            events.append(try await connection.addMatch(rule) { [weak self] _ in self?.changes += 1 })
            try await connection.call(
                "org.a11y.atspi.Registry", "/org/a11y/atspi/registry", "org.a11y.atspi.Registry", "RegisterEvent",
                build: { try $0.append(kind.lowercased() + ":") }, decode: { _ in })
        }
    }

    /// Starts a program on this screen.
    public func start(_ arguments: [String], environment more: [String: String] = [:]) throws -> ChildProcess {
        try ChildProcess(
            arguments, environment: environment.merging(more) { $1 },
            output: (directory.path + "/programs.log", directory.path + "/programs.log"))
    }

    /// The programs' output.
    public var log: String { (try? String(contentsOfFile: directory.path + "/programs.log", encoding: .utf8)) ?? "" }

    /// Reads what is on the screen.
    public func look() async throws -> Sight {
        await Sight(
            below: Accessible(
                bus: try connection, name: "org.a11y.atspi.Registry", path: "/org/a11y/atspi/accessible/root"))
    }

    /// Waits until the screen satisfies a condition. It reads the screen again when a program reports a change, and at
    /// least twice a second, because GTK doesn't report every change.
    ///
    /// - Parameter what: the condition in words, for the error.
    /// - Throws: ``Missing``, or what the condition throws.
    public func waits(until what: String, _ condition: (Sight) async throws -> Bool) async throws {
        do {
            try await eventually(what, within: .seconds(120)) {
                let seen = changes
                if try await condition(look()) { return true }
                let end = ContinuousClock.now + .milliseconds(500)
                while changes == seen, ContinuousClock.now < end { try await Task.sleep(for: .milliseconds(10)) }
                return false
            }
        } catch let error as DeadlinePassed {
            throw Missing(description: "\(error); the screen shows: \(try await look().labels); \(log)")
        }
    }

    /// Waits until a text is on the screen, in a window that keys reach. What a window shows can be read before it is
    /// mapped, and until then its keys are lost.
    /// - Throws: ``Missing``.
    public func shows(_ text: String) async throws {
        try await waits(until: "the screen shows “\(text)”") { $0.hasInFront(text) }
    }

    /// An error: the screen doesn't show what is expected.
    public struct Missing: Error, CustomStringConvertible {
        /// What is missing, and what the screen shows instead.
        public let description: String
    }

    /// Moves the keyboard focus with Tab until it is on an element whose label contains a text.
    ///
    /// Two text fields must not follow each other on the way: GTK 4.8 doesn't report that one has the focus.
    /// - Throws: ``Missing``.
    public func reach(_ text: String, tab isTab: Bool = false) async throws {
        for _ in 0..<40 {
            let focus = try await look().focus
            if let focus, focus.isOn(text), !isTab || focus.isTab { return }
            try await press(.tab)
            try await waits(until: "Tab moves the keyboard on from \(focus?.name ?? "a field")") { $0.focus != focus }
        }
        let labels = try await look().labels
        throw Missing(description: "“\(text)” can't be reached by keyboard; the screen shows: \(labels)")
    }

    /// Moves the keyboard focus with Tab into the text field that follows.
    public func enterField() async throws {
        try await press(.tab)
        try await waits(until: "a field has the keyboard") { $0.focus == nil }
    }

    /// Waits until a text is shown and a text field has the keyboard focus.
    public func waitsForField(below text: String) async throws {
        try await waits(until: "the field below “\(text)” has the keyboard") { $0.has(text) && $0.focus == nil }
    }

    /// Presses a button as assistive technology does, even if it is behind a dialog.
    /// - Throws: ``Missing``.
    public func act(on button: String) async throws {
        guard let element = try await look().button(button) else {
            throw Missing(description: "there is no button “\(button)”")
        }
        try await Accessible(bus: connection, name: element.program, path: element.path).act()
    }

    /// Whether what has the keyboard focus is within its window, and not beyond an edge.
    public func hasFocusInWindow() async throws -> Bool {
        let elements = try await look().focusedElements
        guard let focus = elements.first, let window = elements.last else { return false }
        let (place, frame) = (try await edges(of: focus), try await edges(of: window))
        return place.lowerBound >= 0 && place.upperBound <= frame.upperBound - frame.lowerBound
    }

    private func edges(of element: Element) async throws -> ClosedRange<Int32> {
        try await Accessible(bus: connection, name: element.program, path: element.path).edges()
    }

    private var connection: BusConnection {
        get throws {
            guard let accessibility else { throw NotStarted() }
            return accessibility
        }
    }

    private struct NotStarted: Error {}

    /// Presses keys in order, as a keyboard does.
    public func press(_ keys: Key...) async throws {
        for key in keys { try await press(key.rawValue) }
    }

    /// Types the ASCII characters of a text, as a keyboard does.
    public func type(_ text: String) async throws {
        for scalar in text.unicodeScalars where scalar.isASCII { try await press(Int32(scalar.value)) }
    }

    /// Presses a letter together with a modifier.
    public func press(_ modifier: Modifier, _ letter: Character) async throws {
        try await generate(modifier.rawValue, 0)
        try await type(String(letter))
        try await generate(modifier.rawValue, 1)
    }

    /// Presses a key together with a modifier.
    public func press(_ modifier: Modifier, _ key: Key) async throws {
        try await generate(modifier.rawValue, 0)
        try await press(key)
        try await generate(modifier.rawValue, 1)
    }

    /// A modifier key, by its key code.
    public enum Modifier: Int32, Sendable {
        case control = 37
        case alt = 64
        case shift = 50
    }

    private func press(_ keysym: Int32) async throws { try await generate(keysym, 3) }

    /// - Parameter kind: 0 presses the key with a code, 1 releases it, and 3 presses and releases the one of a keysym.
    private func generate(_ key: Int32, _ kind: UInt32) async throws {
        try await connection.call(
            "org.a11y.atspi.Registry", "/org/a11y/atspi/registry/deviceeventcontroller",
            "org.a11y.atspi.DeviceEventController", "GenerateKeyboardEvent",
            build: {
                try $0.append(key)
                try $0.append("")
                try $0.append(kind)
            }, decode: { _ in })
    }

    /// Presses the first button of the mouse at a place on the screen, which may be beyond its edges.
    public func click(x: Int32, y: Int32) async throws {
        try await connection.call(
            "org.a11y.atspi.Registry", "/org/a11y/atspi/registry/deviceeventcontroller",
            "org.a11y.atspi.DeviceEventController", "GenerateMouseEvent",
            build: {
                try $0.append(x)
                try $0.append(y)
                try $0.append("b1c")
            }, decode: { _ in })
    }

    /// A key by its keysym.
    public enum Key: Int32, Sendable {
        case space = 0x20
        case down = 0xff54
        case enter = 0xff0d
        case tab = 0xff09
        case backTab = 0xfe20
        case escape = 0xff1b
        case home = 0xff50
        case end = 0xff57
        case f1 = 0xffbe
    }

    /// Saves a picture in the directory `UBIQUITOUS_STORE_SCREENSHOTS`, if that is set, with the style in its name.
    public func picture(_ name: String) async throws {
        guard let folder = ProcessInfo.processInfo.environment["UBIQUITOUS_STORE_SCREENSHOTS"] else { return }
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        // Transitions have ended by then.
        try await Task.sleep(for: .milliseconds(700))
        _ = try await start(["import", "-window", "root", "\(folder)/\(name)-\(style.rawValue).png"]).finish()
    }

    /// GTK's warnings, without those of GTK 4.8 that mean nothing.
    public var complaints: [Substring] {
        log.split(separator: "\n").filter { line in
            (line.contains("CRITICAL") || line.contains("WARNING")) && !Self.meaningless.contains(where: line.contains)
        }
    }

    private static let meaningless = [
        // A field that is greyed out while the user types in it goes on blinking its cursor.
        "did not receive a focus-out event",
        // A dialog opened between the press and the release of a mouse button.
        "Broken accounting of active state",
    ]

    /// Returns the color of a pixel, as `#RRGGBB`.
    public func color(x: Int, y: Int) async throws -> String {
        let file = directory.path + "/pixel-\(UUID().uuidString)"
        let crop = "1x1+\(x)+\(y)"
        let pixel = try start(["import", "-window", "root", "-crop", crop, "-depth", "8", "rgb:\(file)"])
        _ = try await pixel.finish()
        let bytes = try Data(contentsOf: URL(filePath: file))
        return "#" + bytes.map { String(format: "%02X", $0) }.joined()
    }
}
