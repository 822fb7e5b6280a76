// SPDX-License-Identifier: Apache-2.0

internal import Adwaita
internal import PanelModel

/// The account page's part about encryption.
@MainActor
final class EncryptionView {
    private let row: ActionRow
    private let encrypt: Button
    private let showWords: Button
    private let replaceRow: ActionRow
    private let replace: Button
    private let problem: ActionRow
    private var offered: KeyMove?
    private var canMove = false
    /// Whether something is under way for which a move would have to wait.
    var isBusy = false { didSet { allow() } }

    init(_ interface: Interface) {
        row = interface.widget("encryption")
        encrypt = interface.widget("encrypt_account")
        showWords = interface.widget("show_words")
        replaceRow = interface.widget("replace_row")
        replace = interface.widget("replace_words")
        problem = interface.widget("encryption_problem")
    }

    /// - Parameters:
    ///   - onShow: called when the recovery words are to be shown.
    ///   - onMove: called when the account is to get a new key.
    func connect(onShow: @escaping @MainActor () -> Void, onMove: @escaping @MainActor (KeyMove) -> Void) {
        showWords.onPress(onShow)
        encrypt.onPress { onMove(.encrypt) }
        replace.onPress { onMove(.replaceWords) }
    }

    func show(_ page: AccountPage) {
        row.subtitle = page.encryption
        showWords.isVisible = page.hasRecoveryWords
        encrypt.isVisible = page.keyMove == .encrypt
        replaceRow.isVisible = page.keyMove == .replaceWords
        canMove = page.canMove
        allow()
        // The problem no longer applies.
        if page.keyMove != offered { show(problem: nil) }
        offered = page.keyMove
    }

    private func allow() {
        for button in [encrypt, replace] { button.isSensitive = canMove && !isBusy }
    }

    /// Shows why the account has no new key; `nil` if nothing is wrong.
    func show(problem sentence: String?) {
        problem.isVisible = sentence != nil
        problem.title = sentence ?? ""
    }
}
