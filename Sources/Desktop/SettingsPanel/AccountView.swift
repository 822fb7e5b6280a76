// SPDX-License-Identifier: Apache-2.0

internal import Adwaita
internal import GLibLoop
internal import PanelModel

/// The account page.
@MainActor
final class AccountView {
    weak var owner: PanelWindow?
    private let welcome: PreferencesGroup
    private let welcomeTitle: Label
    private let welcomeText: Label
    private let welcomeButton: Button
    private let groups: [PreferencesGroup]
    private let state: ActionRow
    private let icon: Image
    private let spinner: Spinner
    private let step: Button
    private let cancel: Button
    private let details: ActionRow
    private let facts: (address: ActionRow, exchange: ActionRow, pending: ActionRow)
    private let encryption: EncryptionView
    private let pauseRow: ActionRow
    private let pause: Switch
    private var page: AccountPage?
    private var isShowing = false
    private var attempt: Task<Void, Never>?
    /// The move to a new key that is under way.
    private var move: KeyMove?

    init(_ interface: Interface) {
        welcome = interface.widget("welcome")
        welcomeTitle = interface.widget("welcome_title")
        welcomeText = interface.widget("welcome_text")
        welcomeButton = interface.widget("welcome_button")
        groups = ["status", "facts", "leaving"].map { interface.widget($0) }
        state = interface.widget("state")
        icon = interface.widget("state_icon")
        spinner = interface.widget("spinner")
        step = interface.widget("step")
        cancel = interface.widget("cancel")
        details = interface.widget("details")
        facts = (interface.widget("address"), interface.widget("exchange"), interface.widget("pending"))
        encryption = EncryptionView(interface)
        pauseRow = interface.widget("pause_row")
        pause = interface.widget("pause")
        connect(interface)
    }

    private func connect(_ interface: Interface) {
        welcomeButton.onPress { [unowned self] in
            if page == nil { owner?.panel.look() } else { owner?.openSignIn() }
        }
        step.onPress { [unowned self] in take() }
        cancel.onPress { [unowned self] in attempt?.cancel() }
        pause.onSwitch { [unowned self] in switchPause() }
        let copy: Button = interface.widget("copy")
        copy.onPress { [unowned self] in
            Desktop.copy(page?.details ?? "")
            owner?.window.toast(tr("Copied"))
        }
        let (signOut, change): (Button, Button) = (interface.widget("sign_out"), interface.widget("switch_account"))
        encryption.connect(
            onShow: { [unowned self] in owner?.openWords(isNew: false) }, onMove: { [unowned self] in ask($0) })
        signOut.onPress { [unowned self] in askSigningOut() }
        change.onPress { [unowned self] in
            let leave: @MainActor () -> Void = { [weak self] in self?.owner?.openSignIn() }
            if page?.isPhraseUnconfirmed == true { askForgettingKey(leave) } else { leave() }
        }
    }

    // MARK: Showing

    func show(_ content: Panel.Content) {
        switch content {
        case .opening: showWelcome(tr("Settings Sync"), tr("Looking for the settings service…"), button: nil)
        case .unavailable(let reason):
            page = nil
            showWelcome(
                tr("No Settings Service"), tr("%1 Apps keep working; their settings stay in the apps.", reason),
                button: tr("_Try Again"))
        case .state(let state):
            let page = move.map(state.accountPage.during) ?? state.accountPage
            self.page = page
            if page.isSignedIn {
                show(page)
            } else {
                showWelcome(page.title, page.explanation, button: page.step.label)
            }
        }
    }

    private func showWelcome(_ title: String, _ text: String, button: String?) {
        let isNew = !welcome.isVisible || !welcomeButton.isVisible
        welcome.isVisible = true
        for group in groups { group.isVisible = false }
        (welcomeTitle.text, welcomeText.text) = (title, text)
        welcomeButton.isVisible = button != nil
        if let button { welcomeButton.label = button }
        if isNew { welcomeButton.focus() }
    }

    private func show(_ page: AccountPage) {
        welcome.isVisible = false
        for group in groups { group.isVisible = true }
        (state.title, state.subtitle, icon.icon) = (page.title, page.explanation, page.icon)
        for (tone, style) in [(AccountPage.Tone.good, "success"), (.bad, "error"), (.waiting, "warning")] {
            if page.tone == tone { icon.addStyle(style) } else { icon.removeStyle(style) }
        }
        step.label = page.step.label
        if page.step == .syncNow { step.removeStyle("suggested-action") } else { step.addStyle("suggested-action") }
        details.isVisible = !page.details.isEmpty
        details.subtitle = page.details
        facts.address.subtitle = page.address
        facts.exchange.subtitle = page.lastExchange
        facts.pending.subtitle = page.pending
        encryption.show(page)
        pauseRow.isSensitive = page.canPause
        isShowing = true
        pause.isOn = page.isPaused
        isShowing = false
    }

    // MARK: The user

    private func switchPause() {
        if isShowing { return }
        let isOn = pause.isOn
        owner?.perform { try await $0.setPaused(isOn) }
    }

    private func take() {
        switch page?.step {
        case .signIn: owner?.openSignIn()
        case .syncNow, .tryNow: wait { try await $0.syncNow() }
        case .resume: owner?.perform { try await $0.setPaused(false) }
        case .newPassword: owner?.openSignIn(renewing: page)
        case .resolve: askSide()
        case .goOn: askGoingOn()
        case .enterWords: owner?.enterWords()
        case nil: break
        }
    }

    /// Runs `body`, which waits for a remote, until the user cancels.
    private func wait(_ body: @escaping @MainActor (PanelService) async throws -> Void) {
        wait(tr("_Cancel"), body) { [weak self] error in
            if let error { self?.owner?.window.toast(ErrorSentence.text(error)) }
        }
    }

    private func wait(
        _ leave: String, _ body: @escaping @MainActor (PanelService) async throws -> Void,
        onEnd: @escaping @MainActor ((any Error)?) -> Void
    ) {
        guard let owner, attempt == nil else { return }
        let service = owner.panel.service
        (spinner.isSpinning, cancel.isVisible) = (true, true)
        cancel.label = leave
        // First, because a widget that is hidden or greyed out can't pass the focus on.
        cancel.focus()
        step.isVisible = false
        encryption.isBusy = true
        attempt = MainThread.task { [weak self] in
            do {
                try await body(service)
                onEnd(nil)
            } catch is CancellationError {
            } catch { onEnd(error) }
            self?.finish()
        }
    }

    private func ask(_ move: KeyMove) {
        owner?.ask(move.question, move.explanation, [("move", move.answer, .suggested)]) { [weak self] answer in
            if answer == "move" { self?.make(move) }
        }
    }

    /// Gives the account a new key. If the user doesn't wait, the move continues.
    private func make(_ move: KeyMove, passingOverUnread passesOver: Bool = false) {
        guard attempt == nil else { return }
        self.move = move
        encryption.show(problem: nil)
        wait(tr("Don't Wa_it")) {
            try await $0.move(move, passingOverUnread: passesOver)
        } onEnd: { [weak self] error in
            guard let error else {
                self?.owner?.openWords(isNew: true)
                return
            }
            self?.encryption.show(problem: move.sentence(error))
            if !passesOver && KeyMove.mayPassOver(error) { self?.askPassingOver(move) }
        }
        if let page { show(page.during(move)) }
    }

    private func askPassingOver(_ move: KeyMove) {
        let (question, explanation, answer) = KeyMove.passingOver
        owner?.ask(question, explanation, [("go", answer, .destructive)]) { [weak self] in
            if $0 == "go" { self?.make(move, passingOverUnread: true) }
        }
    }

    private func finish() {
        (attempt, move) = (nil, nil)
        (spinner.isSpinning, step.isVisible) = (false, true)
        if cancel.hasFocus { step.focus() }
        cancel.isVisible = false
        encryption.isBusy = false
        owner?.panel.look()
    }

    private func askSide() {
        owner?.ask(
            tr("Which Side Do You Want to Keep?"),
            tr(
                "The account is gone from its location, or another account is there. You can upload this device's settings again, for all devices. Or you can replace them with what is there now. If nothing is there and the account is not encrypted, it is then empty, on this device too."
            ),
            [
                ("remote", tr("Use _What Is There"), .plain), ("local", tr("Use _This Device's"), .plain),
            ]
        ) { [weak self] side in
            if side == "cancel" { return }
            self?.wait { try await $0.resolve(keepingThisDevices: side == "local") }
        }
    }

    private func askGoingOn() {
        owner?.ask(
            tr("Go On Without What Is Missing?"),
            tr(
                "This device uses what it could read of the account, and uploads its own settings. If the rest arrives later, it is added."
            ),
            [("go", tr("_Go On"), .suggested)]
        ) { [weak self] in
            if $0 == "go" { self?.wait { try await $0.resolve(keepingThisDevices: true) } }
        }
    }

    /// - Parameter warning: says what would be lost now, if the user was told something else.
    private func askSigningOut(_ warning: String? = nil) {
        let text = warning ?? page?.signingOut ?? ""
        owner?.ask(
            tr("Sign Out on This Device?"), text,
            [
                ("remove", tr("Sign Out and _Remove"), .destructive), ("keep", tr("Sign _Out"), .suggested),
            ]
        ) { [weak self] answer in
            if answer == "cancel" { return }
            let keepsValues = answer == "keep"
            self?.owner?.perform { service in
                // Apps may have made changes since the state was read.
                let loss = keepsValues ? nil : try await service.lossOnSigningOut()
                if let loss, loss != text {
                    self?.askSigningOut(loss)
                    return
                }
                @Sendable func signOut(_ service: PanelService, keepingLastKey: Bool) async throws -> Bool {
                    try await service.signOut(
                        keepingValues: keepsValues, keepingPending: loss == nil, keepingLastKey: keepingLastKey)
                }
                if try await signOut(service, keepingLastKey: true) { return }
                self?.askForgettingKey { [weak self] in
                    self?.owner?.perform { _ = try await signOut($0, keepingLastKey: false) }
                }
            }
        }
    }

    /// Asks before the account is left although nobody has confirmed its words.
    private func askForgettingKey(_ leave: @escaping @MainActor () -> Void) {
        owner?.ask(
            tr("Leave the Account Without the Recovery Words?"),
            tr(
                "Nobody has confirmed the words of this encrypted account. Without them, and without a device that is signed in, nobody can read the account any more. Show the words and write them down first."
            ),
            [
                ("forget", tr("_Leave Without Them"), .destructive),
                ("show", tr("Show Recovery _Words…"), .suggested),
            ]
        ) { [weak self] answer in
            switch answer {
            case "show": self?.owner?.openWords(isNew: true)
            case "forget": leave()
            default: break
            }
        }
    }
}
