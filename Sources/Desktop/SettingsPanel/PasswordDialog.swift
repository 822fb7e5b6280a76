// SPDX-License-Identifier: Apache-2.0

internal import Adwaita
internal import GLibLoop

/// Asks for a new password for the account.
@MainActor
enum PasswordDialog {
    static func ask(
        _ reason: String, over window: Window, _ handler: @escaping @MainActor (_ user: String, String) -> Void
    ) {
        let dialog = MessageDialog(over: window, heading: tr("New Password"), body: reason)
        let interface = Interface(PackageResources.password_ui)
        let (box, user, password): (Widget, EntryRow, EntryRow) = (
            interface.widget("box"), interface.widget("user"), interface.widget("password")
        )
        dialog.extra = box
        dialog.offer("cancel", label: tr("_Cancel"))
        dialog.offer("renew", label: tr("_Sign In"), .suggested)
        dialog.presume(close: "cancel", enter: "renew")
        dialog.enable("renew", false)
        password.onChange { dialog.enable("renew", !password.text.isEmpty) }
        dialog.onAnswer { answer in if answer == "renew" { handler(user.text, password.text) } }
        dialog.present()
        password.focus()
    }
}
