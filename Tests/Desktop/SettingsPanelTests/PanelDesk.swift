// SPDX-License-Identifier: Apache-2.0

import DesktopTesting
import Foundation
import SDBus
import UbiquitousStoreTesting

/// A device with a screen, and the panel on it.
@BusActor
final class PanelDesk {
    nonisolated static let notes = "org.example.Notes"
    nonisolated static let prefs = "org.example.PrefsInCloud"

    let bus: PrivateBus
    let screen: Screen
    let device: Device
    let client: BusClient
    /// The user's XDG_DATA_HOME.
    let data: TemporaryDirectory
    private(set) var window: ChildProcess?
    private var environment: [String: String] = [:]
    private let style: Style

    init(
        _ name: String = "laptop", style: Style = .light, apps: [String] = [PanelDesk.notes, PanelDesk.prefs],
        configure: (inout Device.Options) -> Void = { _ in }
    ) async throws {
        self.style = style
        bus = try await .start()
        var options = Device.Options()
        options.name = name
        options.manifests = apps.map { ManifestText($0) }
        configure(&options)
        device = try Device(on: bus, options)
        screen = try await .start(style)
        client = try BusClient(bus)
        data = try TemporaryDirectory()
        try Self.installIcons(data.path + "/icons/hicolor")
    }

    /// Makes another screen for the same user of the same device.
    init(beside other: PanelDesk) async throws {
        (style, bus, device) = (other.style, other.bus, other.device)
        screen = try await .start(style)
        client = try BusClient(bus)
        data = try TemporaryDirectory()
        try Self.installIcons(data.path + "/icons/hicolor")
    }

    /// Opens the panel, with its icons installed.
    func open() async throws {
        environment = ["UBIQUITOUS_STORE_BUS": bus.address, "XDG_DATA_HOME": data.path]
        window = try start()
        try await screen.waits(until: "the window with “Account” has the keyboard") {
            $0.isAnyWindowActive && $0.hasInFront(text("Account"))
        }
    }

    /// Starts the program, even if it runs already.
    func start() throws -> ChildProcess {
        try screen.start([ChildProcess.built("ubiquitous-store-settings")], environment: environment)
    }

    private static func installIcons(_ theme: String) throws {
        let icons = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "../../../packaging/desktop/icons")
        for file in try FileManager.default.contentsOfDirectory(atPath: icons.standardizedFileURL.path) {
            let place = theme + (file.hasSuffix("-symbolic.svg") ? "/symbolic/apps" : "/scalable/apps")
            try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
            try FileManager.default.copyItem(
                atPath: icons.standardizedFileURL.path + "/" + file, toPath: place + "/" + file)
        }
    }

    /// Returns a text of the sources as the panel shows it.
    func text(_ english: String) -> String { style.text(english) }

    func shows(_ text: String) async throws { try await screen.shows(self.text(text)) }

    func reach(_ text: String) async throws { try await screen.reach(self.text(text)) }

    /// Reaches a button and presses it.
    func press(_ button: String) async throws {
        try await reach(button)
        try await screen.press(.enter)
    }

    /// Waits until a text is gone.
    func hides(_ text: String) async throws {
        try await screen.waits(until: "“\(text)” is gone") { !$0.has(self.text(text)) }
    }

    func picture(_ name: String) async throws { try await screen.picture(name) }

    /// GTK's warnings.
    var complaints: [Substring] { screen.complaints }
}
