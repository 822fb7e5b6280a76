// SPDX-License-Identifier: Apache-2.0

internal import Adwaita
internal import GLibLoop
internal import PrefsColors
internal import UbiquitousStore

/// The window, and the store behind it.
@MainActor
final class PreferencesWindow {
    private let window: Window
    private let color: ComboRow
    private let change: ActionRow
    private let account: ActionRow
    private let localCopy = KeyFile(configuration: "org.example.PrefsInCloud/preferences")
    private var preference: Preference { didSet { if preference != oldValue { show(oldValue) } } }
    private var store: UbiquitousStore?
    private var isOpening = false
    /// Whether the store's service is gone.
    private var isCutOff = false
    /// Whether the row is being set, so that its signal isn't the user's choice.
    private var isShowing = false

    init(_ application: Application) {
        let interface = Interface(PackageResources.window_ui)
        window = interface.widget("window")
        color = interface.widget("color")
        change = interface.widget("change")
        account = interface.widget("account")
        let kept = localCopy.integer("backgroundColor", in: "Preferences").flatMap(BackgroundColor.init)
        let isPending = localCopy.integer("isPending", in: "Preferences") == 1
        preference = Preference(localColor: kept ?? .white, isPending: isPending)
        let settings: Button = interface.widget("settings")
        let panel = DesktopApplication("org.example.UbiquitousStore.Settings.desktop")
        settings.isVisible = panel != nil
        settings.onPress { if let panel { Desktop.launch(panel) } }
        color.offer(BackgroundColor.allCases.map(\.name))
        show(nil)
        color.onSelection { [unowned self] in choose() }
        // Without a service, try again when the user comes back, so that nothing wakes up meanwhile.
        window.onActiveChange { [unowned self] in if window.isActive { open() } }
        window.join(application)
        window.present()
        open()
    }

    func present() { window.present() }

    /// Shows the keyboard shortcuts.
    func showShortcuts() { window.showShortcuts(PackageResources.shortcuts_ui) }

    // MARK: The user

    private func choose() {
        guard !isShowing, let color = color.selection.flatMap(BackgroundColor.init) else { return }
        preference.choose(color, isOpen: store != nil && !isCutOff)
        store?[.backgroundColor] = color.rawValue
        open()
    }

    // MARK: The store

    private func open() {
        guard store == nil, !isOpening else { return }
        isOpening = true
        MainThread.task { [self] in
            do {
                let store = try await UbiquitousStore.open()
                // The sequences first: what arrives meanwhile waits in them, so that nothing is missed.
                let (changes, states) = (store.changes, store.account)
                try await store.synchronize()
                self.store = store
                if preference.open(stored: stored) { store[.backgroundColor] = preference.color.rawValue }
                MainThread.task { [weak self] in for await change in changes { self?.note(change) } }
                MainThread.task { [weak self] in for await state in states { self?.note(state) } }
            } catch {
                logWarning("The store could not be opened: \(error)")
                account.subtitle =
                    switch (error as? UbiquitousStoreError)?.code {
                    case .serviceUnavailable: tr("The settings service is not running")
                    case .notEntitled, .identityUnknown, .ambiguousIdentity, .accessDenied:
                        tr("The service refuses this app its settings")
                    default: tr("The settings can't be opened")
                    }
            }
            isOpening = false
        }
    }

    private func note(_ state: UbiquitousStore.AccountState) {
        account.subtitle = state.sentence
        if let error = state.lastError { logWarning("The account has an error: \(error.message)") }
        let wasCutOff = isCutOff
        isCutOff = state.status == .unavailable
        // The store itself sends what was set meanwhile.
        if wasCutOff && !isCutOff { _ = preference.open(stored: stored) }
    }

    private func note(_ change: UbiquitousStore.Change) {
        guard change.keys.contains("backgroundColor") || change.keys.isEmpty else { return }
        if let error = change.error { logWarning("The color was refused: \(error.message)") }
        preference.note(change.reason, stored: stored)
    }

    /// The store's number. One that is no color is logged, and ignored by ``Preference``.
    private var stored: Int? {
        let number = store?[.backgroundColor]
        if let number, BackgroundColor(rawValue: number) == nil { logWarning("The store's number is not a color.") }
        return number
    }

    // MARK: The screen

    private func show(_ former: Preference?) {
        if let former { window.removeStyle(former.color.style) }
        window.addStyle(preference.color.style)
        isShowing = true
        color.selection = preference.color.rawValue
        isShowing = false
        change.subtitle = preference.lastChange.sentence
        guard let former else { return }
        if (former.localColor, former.isPending) == (preference.localColor, preference.isPending) { return }
        do throws(KeyFile.Failure) {
            try localCopy.set(preference.isPending ? 1 : 0, for: "isPending", in: "Preferences")
            try localCopy.set(preference.localColor.rawValue, for: "backgroundColor", in: "Preferences")
        } catch { logWarning("The local copy could not be written: \(error)") }
    }
}

extension UbiquitousStore.Key<Int> {
    static var backgroundColor: Self { Self("backgroundColor") }
}
