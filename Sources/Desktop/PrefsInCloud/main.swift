// SPDX-License-Identifier: Apache-2.0

// Apple's sample "Synchronizing App Preferences with iCloud": a window whose color syncs to the user's other devices.

internal import Adwaita
internal import GLibLoop
internal import Glibc
internal import PrefsColors

if getenv("UBIQUITOUS_STORE_IDENTIFIER") == nil { setenv("UBIQUITOUS_STORE_IDENTIFIER", "org.example.PrefsInCloud", 1) }
installTranslations()
let application = Application(id: "org.example.PrefsInCloud")
var window: PreferencesWindow?
application.onActivate {
    StyleSheet.add(BackgroundColor.styleSheet)
    if let window { window.present() } else { window = PreferencesWindow(application) }
}
application.addAction("shortcuts", shortcuts: ["F1", "<Control>question"]) { window?.showShortcuts() }
application.addAction("quit", shortcuts: ["<Control>q"]) { application.quit() }
application.setShortcuts(["<Control>w"], of: "window.close")
exit(application.run())
