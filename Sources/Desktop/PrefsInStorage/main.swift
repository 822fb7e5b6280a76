// SPDX-License-Identifier: Apache-2.0

// Prefs in Cloud with `@AppStorage` alone. Its manifest, packaging/desktop/org.example.PrefsInStorage.plist, declares
// that the color roams; this code knows nothing of accounts or other devices.

internal import Adwaita
internal import GLibLoop
internal import Glibc
internal import PrefsColors
internal import UbiquitousDefaults

installTranslations()
UserDefaults.use(domain: "org.example.PrefsInStorage")
let application = Application(id: "org.example.PrefsInStorage")
var window: ColorWindow?
application.onActivate {
    StyleSheet.add(BackgroundColor.styleSheet)
    if let window { window.present() } else { window = ColorWindow(application) }
}
application.addAction("quit", shortcuts: ["<Control>q"]) { application.quit() }
application.setShortcuts(["<Control>w"], of: "window.close")
exit(application.run(readingArguments: false))
