// SPDX-License-Identifier: Apache-2.0

internal import Adwaita
internal import GLibLoop
internal import PanelModel

/// The window, with its three pages.
@MainActor
final class PanelWindow {
    let window: PreferencesWindow
    let panel: Panel
    private let accountView: AccountView
    private let devicesView: DevicesView
    private let appsView: AppsView
    private var storeView: StoreView?
    private var signIn: SignInDialog?
    private var words: RecoveryWordsDialog?
    private var isFetchingWords = false

    /// - Parameter onClose: called when the user has closed the window.
    init(_ application: Application, onClose: @escaping @MainActor () -> Void) {
        let interface = Interface(PackageResources.panel_ui)
        window = interface.widget("window")
        panel = Panel(bus: environmentVariable("UBIQUITOUS_STORE_BUS") ?? "system")
        accountView = AccountView(interface)
        devicesView = DevicesView(interface)
        appsView = AppsView(interface)
        accountView.owner = self
        devicesView.owner = self
        appsView.owner = self
        panel.onChange = { [unowned self] in show() }
        panel.seen = { [unowned self] in window.isMinimized ? .nothing : window.page == "apps" ? .apps : .account }
        window.onActiveChange { [unowned self] in if window.isActive { panel.look() } }
        window.onClose { [unowned self] in
            panel.isVisible = false
            // Later, because the window must not be released during its own signal.
            MainThread.task { onClose() }
        }
        window.join(application)
        show()
        panel.isVisible = true
        window.present()
    }

    func present() { window.present() }

    /// Shows one of the pages by its name in `panel.ui`.
    func show(page: String) {
        if storeView != nil { closeStore() }
        window.page = page
    }

    /// Shows the keyboard shortcuts.
    func showShortcuts() { window.showShortcuts(PackageResources.shortcuts_ui) }

    private func show() {
        accountView.show(panel.content)
        switch panel.content {
        case .opening: break
        case .unavailable(let reason):
            devicesView.showUnavailable(reason)
            appsView.showUnavailable(reason)
            storeView?.showUnavailable(reason)
        case .state(let state):
            devicesView.show(state.devicesPage)
            appsView.show(state)
            storeView?.look()
        }
    }

    /// The state that was read last from the service; `nil` if there is none.
    var state: PanelState? {
        if case .state(let state) = panel.content { state } else { nil }
    }

    /// Takes back what is being typed, or closes the page that is over the others.
    func leave() {
        if !devicesView.takeBack(), storeView != nil { closeStore() }
    }

    // MARK: Requests

    /// Asks the service for something, shows an error, and reads the service's state again in any case.
    func perform(
        _ body: @escaping @MainActor (PanelService) async throws -> Void, done: String? = nil
    ) {
        let service = panel.service
        MainThread.task { [weak self] in
            do {
                try await body(service)
                if let done { self?.window.toast(done) }
            } catch {
                self?.window.toast(ErrorSentence.text(error))
            }
            self?.panel.look()
        }
    }

    /// - Parameter account: the account that gets new credentials; `nil` to sign in to any.
    func openSignIn(renewing account: AccountPage? = nil) {
        // Assistive technology can press a button twice.
        if signIn != nil { return }
        signIn = SignInDialog(panel, renewing: account, over: window) { [weak self] isNewlyEncrypted in
            if isNewlyEncrypted { self?.openWords(isNew: true) }
        } onClose: { [weak self] in
            self?.signIn = nil
        }
    }

    /// Shows the words of the encrypted account.
    ///
    /// - Parameter isNew: whether the account was just made, so that nobody has noted the words yet.
    func openWords(isNew: Bool) {
        // A second press opens no second dialog.
        if isFetchingWords || words != nil { return }
        isFetchingWords = true
        let service = panel.service
        MainThread.task { [weak self] in
            defer { self?.isFetchingWords = false }
            do {
                let words = try await service.recoveryWords()
                guard let self else { return }
                self.words = RecoveryWordsDialog(words, isNew: isNew, over: self)
            } catch {
                self?.window.toast(ErrorSentence.text(error))
            }
        }
    }

    func closeWords() { words = nil }

    /// Asks for the words if the key is missing on this device.
    func enterWords() {
        let service = panel.service
        EnterWordsDialog.open(
            over: window, reason: tr("You have noted them, or a device that is signed in shows them, under Encryption.")
        ) { words in
            try await service.unlock(words)
        } onDone: { [weak self] in
            self?.panel.look()
        }
    }

    func openStore(_ row: AppsPage.Row) {
        if storeView != nil { return }
        let view = StoreView(row, self)
        storeView = view
        window.present(subpage: view.page)
    }

    func closeStore() {
        window.closeSubpage()
        storeView = nil
    }

    /// Asks before something that can't be undone.
    func ask(
        _ heading: String, _ body: String, _ answers: [(id: String, label: String, look: MessageDialog.Appearance)],
        _ handler: @escaping @MainActor (String) -> Void
    ) {
        let dialog = MessageDialog(over: window, heading: heading, body: body)
        dialog.offer("cancel", label: tr("_Cancel"))
        for answer in answers { dialog.offer(answer.id, label: answer.label, answer.look) }
        // Where there is no room beside each other, the other answers are above.
        dialog.presume(close: "cancel", enter: "cancel")
        dialog.onAnswer(handler)
        dialog.present()
    }
}
