// SPDX-License-Identifier: Apache-2.0

internal import Adwaita
internal import GLibLoop
internal import PanelModel

/// Asks where the account is, and signs in.
@MainActor
final class SignInDialog {
    let window: Window
    let panel: Panel
    private let widgets: SignInWidgets
    private let kinds: [RemoteKind]
    private var rows: [FieldRow] = []
    private var form: SignInForm
    private var attempt: Task<Void, Never>?
    private let onClose: @MainActor () -> Void

    init(_ panel: Panel, over parent: Window, onClose: @escaping @MainActor () -> Void) {
        let interface = Interface(PackageResources.sign_in_ui)
        (self.panel, self.onClose) = (panel, onClose)
        window = interface.widget("dialog")
        widgets = SignInWidgets(interface)
        if case .state(let state) = panel.content {
            kinds = RemoteKind.offered(by: state.features)
            widgets.bringGroup.isVisible = state.accountPage.isSignedIn
        } else {
            kinds = RemoteKind.allCases
        }
        form = SignInForm(kinds.first ?? .folder)
        widgets.kind.offer(kinds.map(\.title))
        connect()
        showKind()
        window.attach(to: parent)
        window.present()
        widgets.kind.focus()
    }

    private func connect() {
        widgets.kind.onSelection { [unowned self] in choose() }
        widgets.cancel.onPress { [unowned self] in cancel() }
        widgets.signIn.onPress { [unowned self] in signIn() }
        widgets.check.onPress { [unowned self] in check() }
        widgets.browser.onPress { [unowned self] in logIn() }
        widgets.bring.onSwitch { [unowned self] in form.bringsValues = widgets.bring.isOn }
        window.onClose { [unowned self] in
            attempt?.cancel()
            onClose()
        }
    }

    // MARK: The form

    private func choose() {
        guard let selection = widgets.kind.selection, kinds.indices.contains(selection) else { return }
        form.kind = kinds[selection]
        showKind()
    }

    private func showKind() {
        for row in rows {
            widgets.fields.remove(row.entry)
            widgets.fields.remove(row.problem)
        }
        rows = form.kind.fields.map { field in
            let row = FieldRow(field)
            row.entry.text = form.values[field] ?? field.preset
            row.offerChoosing(over: window) { [unowned self] in read() }
            row.entry.onChange { [unowned self, unowned row] in change(row) }
            row.entry.onEnter { [unowned self] in signIn() }
            widgets.fields.add(row.entry)
            widgets.fields.add(row.problem)
            return row
        }
        widgets.kind.subtitle = form.kind.explanation
        widgets.browserGroup.isVisible = form.kind == .nextcloud
        widgets.showSteps([])
        show(nil)
        showWarning()
    }

    private func change(_ row: FieldRow) {
        form.values[row.field] = row.entry.text
        row.show(nil)
        showWarning()
    }

    private func read() {
        for row in rows { form.values[row.field] = row.entry.text }
        showWarning()
    }

    private func showWarning() {
        widgets.warningGroup.isVisible = form.warning != nil
        widgets.warning.subtitle = form.warning ?? ""
    }

    /// Says what is wrong at the field that it belongs to, and takes the keyboard there.
    private func show(_ error: FieldError?) {
        let place = rows.first { $0.field == error?.field }
        for row in rows { row.show(row === place ? error : nil) }
        place?.entry.focus()
        let isGeneral = error != nil && place == nil
        widgets.problem.isVisible = isGeneral
        (widgets.problem.title, widgets.problem.subtitle) =
            isGeneral ? (error?.sentence ?? "", error?.details ?? "") : ("", "")
    }

    // MARK: What takes time

    /// Does something that can be canceled, and shows what goes wrong; `widget` has the keyboard afterwards.
    private func attempt(
        then widget: Widget, _ body: @escaping @MainActor (SignInForm, PanelService) async throws -> Void
    ) {
        guard attempt == nil else { return }
        read()
        show(nil)
        widgets.showSteps([])
        widgets.isBusy = true
        let service = panel.service
        attempt = MainThread.task { [weak self] in
            guard var form = self?.form else { return }
            var flaw: FieldError?
            do {
                try form.readCertificate()
                try await body(form, service)
            } catch is CancellationError {
            } catch {
                flaw = FieldError(error, in: form)
            }
            self?.widgets.isBusy = false
            self?.attempt = nil
            // Last, as what is greyed out takes no keyboard.
            widget.focus()
            if let flaw { self?.show(flaw) }
        }
    }

    private func cancel() {
        if let attempt { attempt.cancel() } else { window.close() }
    }

    private func signIn() {
        attempt(then: widgets.signIn) { [weak self] form, service in
            try await service.signIn(form)
            self?.panel.look()
            self?.window.close()
        }
    }

    private func check() {
        attempt(then: widgets.check) { [weak self] form, service in
            self?.widgets.showSteps(try await service.check(form))
        }
    }

    private func logIn() {
        attempt(then: widgets.signIn) { [weak self] form, _ in
            let client = try BrowserLoginClient(form)
            defer { client.close() }
            let login = try await client.begin()
            if let self, !login.otherHosts.isEmpty, await !isTrusted(login.otherHosts) { return }
            guard let self else { return }
            Desktop.browse(login.page, from: window)
            widgets.browserRow.subtitle = tr("Waiting for you to agree in the browser…")
            defer {
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
                    "The server sends the login to %1. Go there only if you know it.", hosts.joined(separator: ", ")))
            dialog.offer("cancel", label: tr("_Cancel"))
            dialog.offer("go", label: tr("_Go There"))
            dialog.presume(close: "cancel")
            dialog.onAnswer { continuation.resume(returning: $0 == "go") }
            dialog.present()
        }
    }

    private func fill(_ credentials: BrowserLogin.Credentials) {
        for row in rows {
            switch row.field {
            case .server: row.entry.text = credentials.server
            case .user: row.entry.text = credentials.user
            case .appPassword: row.entry.text = credentials.password
            default: break
            }
        }
        read()
    }
}
