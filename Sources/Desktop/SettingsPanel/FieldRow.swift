// SPDX-License-Identifier: Apache-2.0

internal import Adwaita
internal import GLibLoop
internal import PanelModel

/// A field of the sign-in dialog, with its error below it.
@MainActor
final class FieldRow {
    let field: SignInField
    let entry: EntryRow
    let problem: ActionRow

    init(_ field: SignInField, title: String) {
        self.field = field
        entry = field.isSecret ? PasswordRow(secret: title) : EntryRow(title: title)
        entry.text = field.preset
        problem = ActionRow(title: "")
        problem.addPrefix(Image(icon: "dialog-warning-symbolic"))
        problem.addStyle("error")
        problem.isVisible = false
    }

    /// Adds a button for choosing a file or folder, if the field names one.
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

    /// Shows what is wrong; `nil` if nothing is.
    func show(_ error: FieldError?) {
        entry.isWrong = error != nil
        problem.isVisible = error != nil
        (problem.title, problem.subtitle) = (error?.sentence ?? "", error?.details ?? "")
    }
}
