// SPDX-License-Identifier: Apache-2.0

// The settings panel: the account, its devices, and what the apps keep.

internal import Adwaita
internal import GLibLoop
internal import Glibc

installTranslations()
let application = Application(id: "org.example.UbiquitousStore.Settings")
var window: PanelWindow?
application.onActivate {
    if let window { window.present() } else { window = PanelWindow(application) }
}
application.addAction("quit", shortcuts: ["<Control>q", "<Control>w"]) { application.quit() }
exit(application.run())
