// SPDX-License-Identifier: Apache-2.0

internal import Adwaita
internal import GLibLoop
internal import PanelModel

/// A field of the sign-in dialog, and below it what is wrong with it.
@MainActor
final class FieldRow {
    let field: SignInField
    let entry: EntryRow
    let problem: ActionRow

    init(_ field: SignInField) {
        self.field = field
        entry = field.isSecret ? PasswordRow(secret: field.title) : EntryRow(title: field.title)
        entry.text = field.preset
        problem = ActionRow(title: "")
        problem.addPrefix(Image(icon: "dialog-warning-symbolic"))
        problem.addStyle("error")
        problem.isVisible = false
    }

    /// Has a button choose a file or folder.
    func offerChoosing(over window: Window, _ handler: @escaping @MainActor () -> Void) {
        guard let choice = field.choice else { return }
        let button = Button(tr("Ch_oose…"))
        button.addStyle("flat")
        button.onPress { [unowned self, unowned window] in
            FileChooser.choose(folder: choice == .folder, title: field.title, over: window) { [weak self] path in
                self?.entry.text = path
                handler()
            }
        }
        entry.addSuffix(button)
    }

    /// Says what is wrong; `nil`: nothing.
    func show(_ error: FieldError?) {
        entry.isWrong = error != nil
        problem.isVisible = error != nil
        (problem.title, problem.subtitle) = (error?.sentence ?? "", error?.details ?? "")
    }
}
