// SPDX-License-Identifier: Apache-2.0

internal import Adwaita
internal import GLibLoop
internal import PanelModel

// Nextcloud's login in the browser.

extension SignInDialog {
    /// Lets the user log in there, and fills in the credentials that the server returns.
    func logIn() {
        attempt(then: widgets.signIn) { [weak self] form, _ in
            let client = try BrowserLoginClient(form)
            defer { client.close() }
            let login = try await client.begin()
            if let self, !login.otherHosts.isEmpty, await !isTrusted(login.otherHosts) { return }
            guard let self else { return }
            widgets.browserRow.subtitle = tr("Waiting for you to agree in the browser…")
            // Beside it, because a desktop may ask which browser to use.
            let browsing = MainThread.task { [weak self] in
                guard let self, await !Desktop.browse(login.page, from: window), !Task.isCancelled else { return }
                Desktop.copy(login.page)
                widgets.browserRow.subtitle = tr(
                    "No browser could be opened. The page's address is in the clipboard: %1", login.page.quoted)
            }
            defer {
                browsing.cancel()
                widgets.browserRow.subtitle = tr(
                    "Enter the server below; user name and app password fill themselves in")
            }
            guard let credentials = try await client.credentials(of: login) else { return }
            fill(credentials)
        }
    }

    private func isTrusted(_ hosts: [String]) async -> Bool {
        await withCheckedContinuation { continuation in
            let dialog = MessageDialog(
                over: window, heading: tr("Go to Another Server?"),
                body: tr(
                    "The server sends the login to %1. Go there only if you know it.",
                    hosts.map(\.quoted).joined(separator: ", ")))
            dialog.offer("cancel", label: tr("_Cancel"))
            dialog.offer("go", label: tr("_Go There"))
            dialog.presume(close: "cancel", enter: "cancel")
            dialog.onAnswer { continuation.resume(returning: $0 == "go") }
            dialog.present()
        }
    }

    private func fill(_ credentials: BrowserLogin.Credentials) {
        for row in rows {
            switch row.field {
            case .server where row.entry.isSensitive: row.entry.text = credentials.server
            case .user: row.entry.text = credentials.user
            case .appPassword: row.entry.text = credentials.password
            default: break
            }
        }
        read()
    }
}
