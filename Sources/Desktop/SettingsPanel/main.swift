// SPDX-License-Identifier: Apache-2.0

// The settings panel: the account, its devices, and what the apps keep.

internal import Adwaita
internal import GLibLoop
internal import Glibc

installTranslations()
let application = Application(id: "org.example.UbiquitousStore.Settings")
var window: PanelWindow?
/// Returns the window, which is made when it is first needed.
@MainActor func presented() -> PanelWindow {
    let shown = window ?? PanelWindow(application) { window = nil }
    if window != nil { shown.present() }
    window = shown
    return shown
}
application.onActivate { _ = presented() }
// Notifications call these actions as well.
for (number, page) in ["account", "devices", "apps"].enumerated() {
    application.addAction("show-\(page)", shortcuts: ["<Alt>\(number + 1)"]) { presented().show(page: page) }
}
application.addAction("shortcuts", shortcuts: ["F1", "<Control>question"]) { presented().showShortcuts() }
application.addAction("quit", shortcuts: ["<Control>q"]) { application.quit() }
application.addAction("leave") { window?.leave() }
application.setShortcuts(["<Control>w"], of: "window.close")
exit(application.run())
