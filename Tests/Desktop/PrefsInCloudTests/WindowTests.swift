// SPDX-License-Identifier: Apache-2.0

import DesktopTesting
import Foundation
import PropertyList
import SDBus
import Testing
import UbiquitousStoreTesting

/// Windows, each on its own screen, driven by keyboard and read as assistive technology reads them.
@Suite(.enabled(if: Screen.isAvailable, "Xvfb, at-spi2-core and ImageMagick are not installed"))
@BusActor
struct WindowTests {
    private static let identifier = "org.example.PrefsInCloud"
    private static let storage = "org.example.PrefsInStorage"

    /// A device with a screen, and a window on it.
    @BusActor
    private final class Desk {
        let bus: PrivateBus
        let screen: Screen
        let device: Device
        let store: StoreClient
        let storage: StoreClient
        let account: AccountClient
        private let style: Style
        var window: ChildProcess?

        init(_ name: String, style: Style = .light) async throws {
            self.style = style
            bus = try await .start()
            var options = Device.Options()
            options.name = name
            let program = try URL(filePath: ChildProcess.built("prefs-in-storage")).resolvingSymlinksInPath().path
            var roaming = ManifestText(WindowTests.storage, application: WindowTests.storage, executables: [program])
            roaming.ubiquitousDefaults = ["backgroundColor"]
            options.manifests = [ManifestText(WindowTests.identifier), roaming]
            device = try Device(on: bus, options)
            screen = try await .start(style)
            let client = try BusClient(bus)
            (store, account) = (try client.store(WindowTests.identifier), client.account)
            storage = try client.store(WindowTests.storage)
        }

        func open(
            _ program: String = "prefs-in-cloud", _ arguments: String..., variables: [String: String] = [:]
        ) async throws {
            window = try screen.start(
                [ChildProcess.built(program)] + arguments,
                environment: variables.merging(["UBIQUITOUS_STORE_BUS": bus.address]) { $1 })
            try await shows("Background Color")
        }

        func shows(_ text: String) async throws { try await screen.shows(style.text(text)) }

        /// Waits until the window has a color.
        func turns(_ color: String) async throws {
            try await eventually("the window turns \(color)") { try await screen.color(x: 12, y: 250) == color }
        }
    }

    @Test func `a color chosen by keyboard on one device is the other's`() async throws {
        let folder = try TemporaryDirectory()
        let (laptop, phone) = (try await Desk("laptop"), try await Desk("phone"))
        for desk in [laptop, phone] {
            try await desk.device.start()
            try await desk.account.join("folder://" + folder.path)
            try await desk.open()
            try await desk.shows("Up to date")
        }
        try await laptop.screen.press(.space, .down, .down, .enter)
        try await laptop.shows("Changed here")
        try await laptop.turns("#8FF0A4")
        try await phone.shows("Changed on another device")
        try await phone.turns("#8FF0A4")
        #expect(try await phone.store.value("backgroundColor") == .integer(2))
    }

    @Test func `a color that @AppStorage has is the other device's, in both directions`() async throws {
        let folder = try TemporaryDirectory()
        let (laptop, phone) = (try await Desk("laptop"), try await Desk("phone"))
        for desk in [laptop, phone] {
            try await desk.device.start()
            try await desk.account.join("folder://" + folder.path)
            try await desk.open("prefs-in-storage")
            try await desk.screen.waits(until: "the choice has the keyboard") {
                $0.focus?.isOn("Background Color") == true
            }
        }
        try await laptop.screen.press(.space, .down, .down, .enter)
        try await laptop.turns("#8FF0A4")
        try await phone.turns("#8FF0A4")
        // Selects the last color, wherever the list begins.
        try await phone.screen.press(.space, .down, .down, .down, .down, .enter)
        try await phone.turns("#F9F06B")
        try await laptop.turns("#F9F06B")
        #expect(try await laptop.storage.value("backgroundColor") == .integer(3))
    }

    @Test func `a color on the command line is shown whatever is stored, as every setting is`() async throws {
        let desk = try await Desk("laptop")
        try await desk.device.start()
        try await desk.storage.set("backgroundColor", .integer(2))
        try await desk.open("prefs-in-storage", "-backgroundColor", "1")
        try await desk.turns("#F66151")
        #expect(try await desk.storage.value("backgroundColor") == .integer(2))
    }

    @Test func `another program's change is told apart from another device's`() async throws {
        let desk = try await Desk("laptop")
        try await desk.device.start()
        try await desk.open()
        try await desk.shows("Not signed in")
        try await desk.store.set("backgroundColor", .integer(1))
        try await desk.shows("Changed by another program on this device")
        try await desk.turns("#F66151")
        try await desk.store.set("backgroundColor", .integer(7))
        try await eventually("it is logged") { desk.screen.log.contains("The store's number is not a color.") }
        try await desk.turns("#F66151")
    }

    @Test func `a service that goes away is missed at once, and gets the choice when it is back`() async throws {
        let desk = try await Desk("laptop")
        try await desk.device.start()
        try await desk.open()
        try await desk.shows("Not signed in")
        desk.device.kill()
        try await desk.shows("The settings service is not running")
        try await desk.screen.press(.space, .down, .enter)
        try await desk.shows("Not kept: the settings can't be opened")
        try await desk.turns("#F66151")
        try await desk.device.restart()
        try await desk.shows("Changed here")
        try await eventually("it is stored") { try await desk.store.value("backgroundColor") == .integer(1) }
    }

    @Test(arguments: [Style.light, .german, .large])
    func `the settings panel is offered where it is installed, and F1 shows the shortcuts`(style: Style) async throws {
        let desk = try await Desk("laptop", style: style)
        try await desk.device.start()
        let data = try TemporaryDirectory()
        try """
        [Desktop Entry]
        Type=Application
        Name=Settings Sync
        Exec=sh -c "touch '\(data.path)/started'"
        """.write(
            toFile: try data.makeDirectory("applications", mode: 0o755)
                + "/org.example.UbiquitousStore.Settings.desktop",
            atomically: true, encoding: .utf8)
        try await desk.open(variables: ["XDG_DATA_HOME": data.path])
        try await desk.shows("Not signed in: the color stays on this device")
        try await desk.screen.picture("prefs-panel")
        try await desk.screen.reach(style.text("Settings…"))
        try await desk.screen.press(.space)
        try await eventually("the panel is started") { access(data.path + "/started", F_OK) == 0 }
        try await desk.screen.press(.f1)
        try await desk.shows("Show the Keyboard Shortcuts")
        try await desk.screen.picture("prefs-shortcuts")
        #expect(desk.screen.complaints == [])
    }

    @Test(arguments: Style.allCases)
    func `without a service the window says so, keeps the choice on this device, and passes it on later`(
        style: Style
    ) async throws {
        let desk = try await Desk("laptop", style: style)
        try await desk.open()
        try await desk.shows("The settings service is not running")
        try await desk.shows("Nothing has changed yet")
        try await desk.screen.press(.space, .down, .enter)
        try await desk.shows("Not kept: the settings can't be opened")
        try await desk.turns("#F66151")
        try await desk.screen.picture("prefs-no-service")
        // A pixel beside the text of the last change.
        if style == .dark { #expect(try await desk.screen.color(x: 360, y: 200) == "#383838") }
        desk.window?.kill()
        try await desk.open()
        try await desk.turns("#F66151")
        try await desk.device.start()
        desk.window?.kill()
        try await desk.open()
        try await desk.shows("Not signed in: the color stays on this device")
        try await desk.turns("#F66151")
        try await desk.screen.picture("prefs")
        #expect(desk.screen.complaints.filter { !$0.contains("could not be opened") } == [])
    }
}
