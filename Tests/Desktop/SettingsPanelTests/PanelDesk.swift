// SPDX-License-Identifier: Apache-2.0

import DesktopTesting
import Foundation
import SDBus
import UbiquitousStoreTesting

/// A device with a screen, and the panel on it.
@BusActor
final class PanelDesk {
    static let notes = "org.example.Notes"
    static let prefs = "org.example.PrefsInCloud"

    let bus: PrivateBus
    let screen: Screen
    let device: Device
    let client: BusClient
    private var window: ChildProcess?
    private var environment: [String: String] = [:]
    private let style: Style

    /// How a desktop looks.
    enum Style: String, CaseIterable, Sendable {
        case light, dark, contrast, german

        var environment: [String: String] {
            switch self {
            case .light: [:]
            case .dark: ["ADW_DEBUG_COLOR_SCHEME": "prefer-dark"]
            case .contrast: ["ADW_DEBUG_HIGH_CONTRAST": "1"]
            case .german: ["LANGUAGE": "de"]
            }
        }
    }

    init(
        _ name: String = "laptop", style: Style = .light, apps: [String] = [PanelDesk.notes, PanelDesk.prefs]
    ) async throws {
        self.style = style
        bus = try await .start()
        var options = Device.Options()
        options.name = name
        options.manifests = apps.map { ManifestText($0) }
        device = try Device(on: bus, options)
        screen = try await .start()
        client = try BusClient(bus)
    }

    /// Opens the panel, with its icons as they are installed.
    func open() async throws {
        let data = try device.directory.makeDirectory("data")
        try Self.installIcons(data + "/icons/hicolor")
        if style == .german { try await Translations.compile(into: data + "/locale") }
        environment = style.environment.merging([
            "UBIQUITOUS_STORE_BUS": bus.address, "XDG_DATA_HOME": data, "TEXTDOMAINDIR": data + "/locale",
        ]) { $1 }
        window = try start()
        try await shows(style == .german ? "Konto" : "Account")
    }

    /// Starts the program, once more where it runs.
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

    func shows(_ text: String) async throws { try await screen.shows(text) }

    func reach(_ text: String) async throws { try await screen.reach(text) }

    /// Saves a picture where `UBIQUITOUS_STORE_SCREENSHOTS` says; without it, nothing happens.
    func picture(_ name: String) async throws {
        guard let folder = ProcessInfo.processInfo.environment["UBIQUITOUS_STORE_SCREENSHOTS"] else { return }
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        // Transitions are over then.
        try await Task.sleep(for: .milliseconds(700))
        try await screen.save("\(folder)/\(name)-\(style.rawValue).png")
    }

    /// What GTK has complained about.
    var complaints: [Substring] {
        screen.log.split(separator: "\n").filter { $0.contains("CRITICAL") || $0.contains("WARNING") }
    }
}
