// SPDX-License-Identifier: Apache-2.0

internal import Adwaita
internal import GLibLoop
internal import PrefsColors
internal import UbiquitousDefaults

/// A window whose color is a setting.
@MainActor
final class ColorWindow {
    @AppStorage("backgroundColor") private var color = BackgroundColor.white
    private let window: Window
    private let row: ComboRow
    private var shown: BackgroundColor?

    init(_ application: Application) {
        let interface = Interface(PackageResources.window_ui)
        window = interface.widget("window")
        row = interface.widget("color")
        row.offer(BackgroundColor.allCases.map(\.name))
        show(color)
        row.onSelection { [unowned self] in choose() }
        window.join(application)
        window.present()
        MainThread.task { [weak self, values = $color.values] in for await color in values { self?.show(color) } }
    }

    func present() { window.present() }

    private func choose() {
        guard let choice = row.selection.flatMap(BackgroundColor.init), choice != shown else { return }
        color = choice
        // An administrator may have decided meanwhile.
        show(color)
    }

    private func show(_ color: BackgroundColor) {
        if let shown { window.removeStyle(shown.style) }
        shown = color
        window.addStyle(color.style)
        row.selection = color.rawValue
        row.isSensitive = !$color.isForced
    }
}
