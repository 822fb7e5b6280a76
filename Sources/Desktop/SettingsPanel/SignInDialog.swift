// SPDX-License-Identifier: Apache-2.0

internal import Adwaita
internal import GLibLoop
internal import PanelModel
internal import UbiquitousStore

/// Asks where the account is, and signs in.
@MainActor
final class SignInDialog {
    let window: Window
    let panel: Panel
    let widgets: SignInWidgets
    private let kinds: [RemoteKind]
    private let roots: FolderRoots
    /// Why the account needs new credentials; `nil` when signing in.
    private let reason: String?
    private(set) var rows: [FieldRow] = []
    private var form: SignInForm
    private var attempt: Task<Void, Never>?
    private let onSignIn: @MainActor (_ isNewlyEncrypted: Bool) -> Void
    private let onClose: @MainActor () -> Void

    /// - Parameters:
    ///   - account: the account that gets new credentials; `nil` to sign in to any.
    ///   - onSignIn: called when the user has signed in. An account that was made encrypted has words to show.
    ///   - onClose: called when the dialog has closed.
    init(
        _ panel: Panel, renewing account: AccountPage? = nil, over parent: Window,
        onSignIn: @escaping @MainActor (_ isNewlyEncrypted: Bool) -> Void,
        onClose: @escaping @MainActor () -> Void
    ) {
        let interface = Interface(PackageResources.sign_in_ui)
        (self.panel, self.onSignIn, self.onClose) = (panel, onSignIn, onClose)
        window = interface.widget("dialog")
        widgets = SignInWidgets(interface)
        if case .state(let state) = panel.content {
            (kinds, roots) = (RemoteKind.offered(by: state.features), state.folderRoots)
            // Both hide what the stores show now.
            let isLeaving = state.account.isSignedIn || state.account.showsFormerAccount
            widgets.bringGroup.isVisible = isLeaving && account == nil
            if !state.account.isSignedIn {
                widgets.bringGroup.explanation = tr(
                    "Apps show the settings of an account that this device has left. In another account, they don't.")
            }
            widgets.encryptGroup.isVisible = state.features.contains("encryption") && account == nil
        } else {
            (kinds, roots) = (RemoteKind.allCases, FolderRoots(nil))
        }
        reason = account?.explanation
        form = account.map { SignInForm(renewing: $0.url) } ?? Self.emptyForm(panel, kinds)
        form.encrypts = widgets.encryptGroup.isVisible
        form.values[.path] = form.values[.path] ?? roots.preset
        widgets.kind.offer(kinds.map(\.title))
        widgets.kind.selection = kinds.firstIndex(of: form.kind)
        if account != nil {
            window.title = tr("New Password")
            widgets.isKindFixed = true
        }
        connect()
        showKind()
        window.attach(to: parent)
        window.present()
        if account == nil { widgets.kind.focus() } else { rows.first { $0.field.isSecret }?.entry.focus() }
    }

    /// Returns the form for signing in, which begins with the administrator's account, if this machine has one.
    private static func emptyForm(_ panel: Panel, _ kinds: [RemoteKind]) -> SignInForm {
        guard case .state(let state) = panel.content, !state.account.isSignedIn, !state.account.defaultBackend.isEmpty
        else { return SignInForm(kinds.first ?? .folder) }
        let form = SignInForm(at: state.account.defaultBackend)
        return kinds.contains(form.kind) ? form : SignInForm(kinds.first ?? .folder)
    }

    private func connect() {
        widgets.kind.onSelection { [unowned self] in choose() }
        widgets.cancel.onPress { [unowned self] in cancel() }
        widgets.signIn.onPress { [unowned self] in signIn() }
        widgets.check.onPress { [unowned self] in check() }
        widgets.browser.onPress { [unowned self] in logIn() }
        widgets.encrypt.onSwitch { [unowned self] in form.encrypts = widgets.encrypt.isOn }
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
            let row = FieldRow(field, title: form.title(of: field))
            row.entry.text = form.values[field] ?? field.preset
            row.entry.isSensitive = !form.isFixed(field)
            row.offerChoosing(over: window) { [unowned self] in read() }
            row.entry.onChange { [unowned self, unowned row] in change(row) }
            row.entry.onEnter { [unowned self] in signIn() }
            widgets.fields.add(row.entry)
            widgets.fields.add(row.problem)
            return row
        }
        let isRefused = form.kind == .folder && roots.areNone
        for widget in [widgets.fields, widgets.encryptGroup, widgets.check, widgets.signIn] as [Widget] {
            widget.isSensitive = !isRefused
        }
        widgets.general.explanation = reason ?? explanation
        widgets.browserGroup.isVisible = form.kind == .nextcloud
        widgets.encrypt.isOn = form.encrypts
        widgets.showSteps([])
        show(nil)
        showWarning()
    }

    private var explanation: String {
        let roots = form.kind == .folder ? roots.explanation : nil
        return [form.kind.explanation, roots].compactMap(\.self).joined(separator: " ")
    }

    private func change(_ row: FieldRow) {
        form.values[row.field] = row.entry.text
        row.show(nil)
        showWarning()
    }

    /// Takes over the texts of the fields.
    func read() {
        for row in rows { form.values[row.field] = row.entry.text }
        showWarning()
    }

    private func showWarning() {
        widgets.warningGroup.isVisible = form.warning != nil
        widgets.warning.subtitle = form.warning ?? ""
    }

    /// Shows an error at its field, and moves the keyboard focus there.
    private func show(_ error: FieldError?) {
        let place = rows.first { $0.field == error?.field }
        for row in rows { row.show(row === place ? error : nil) }
        place?.entry.focus()
        let isGeneral = error != nil && place == nil
        widgets.problem.isVisible = isGeneral
        (widgets.problem.title, widgets.problem.subtitle) =
            isGeneral ? (error?.sentence ?? "", error?.details ?? "") : ("", "")
    }

    // MARK: Attempts

    /// Runs an attempt that can be canceled, and shows its error. Afterwards `widget` has the keyboard focus.
    func attempt(
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
            } catch {
                // A user who has canceled needs no reason.
                flaw = Task.isCancelled ? nil : FieldError(error, in: form)
            }
            self?.widgets.isBusy = false
            self?.attempt = nil
            // Last, because a widget that is greyed out can't get the focus.
            widget.focus()
            self?.widgets.showLastStep()
            if let flaw { self?.show(flaw) }
        }
    }

    private func cancel() {
        if let attempt { attempt.cancel() } else { window.close() }
    }

    private func signIn() {
        attempt(then: widgets.signIn) { [weak self] form, service in
            do {
                try await service.signIn(form)
                self?.finish(isNewlyEncrypted: form.makesEncrypted)
            } catch let error as UbiquitousStoreError {
                switch error.code {
                case .keyNeeded: self?.askWords(form)
                // Signing in with this device's values is refused because there is an account, encrypted or not.
                case .conflict where form.makesEncrypted && !form.bringsValues: self?.askPlain()
                default: throw error
                }
            }
        }
    }

    private func finish(isNewlyEncrypted: Bool) {
        panel.look()
        window.close()
        onSignIn(isNewlyEncrypted)
    }

    /// Asks for the words of the existing account.
    private func askWords(_ form: SignInForm) {
        let service = panel.service
        EnterWordsDialog.open(
            over: window,
            reason: tr("The account is encrypted. A device that is signed in shows its words, under Encryption.")
        ) { words in
            var form = form
            form.recoveryWords = words
            try await service.signIn(form)
        } onDone: { [weak self] in
            self?.finish(isNewlyEncrypted: false)
        }
    }

    /// Asks whether to sign in to an existing unencrypted account, and says what that means.
    private func askPlain() {
        let dialog = MessageDialog(
            over: window, heading: tr("Sign In Without Encryption?"),
            body: tr(
                "The account at this location is not encrypted. Anyone with access to the location can read your settings."
            ))
        dialog.offer("cancel", label: tr("_Cancel"))
        dialog.offer("sign-in", label: tr("_Sign In Anyway"))
        dialog.presume(close: "cancel", enter: "cancel")
        dialog.onAnswer { [weak self] answer in
            guard let self, answer == "sign-in" else { return }
            widgets.encrypt.isOn = false
            signIn()
        }
        dialog.present()
    }

    private func check() {
        attempt(then: widgets.check) { [weak self] form, service in
            let steps = try await service.check(form)
            self?.widgets.showSteps(steps.map(CheckStep.init))
        }
    }
}
