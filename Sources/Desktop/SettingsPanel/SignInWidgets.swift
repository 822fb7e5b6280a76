// SPDX-License-Identifier: Apache-2.0

internal import Adwaita
internal import GLibLoop
internal import PanelModel

/// The widgets of the sign-in dialog.
@MainActor
final class SignInWidgets {
    let cancel: Button
    let signIn: Button
    let general: PreferencesGroup
    let kind: ComboRow
    let problem: ActionRow
    let browserGroup: PreferencesGroup
    let browserRow: ActionRow
    let browser: Button
    let fields: PreferencesGroup
    let warningGroup: PreferencesGroup
    let warning: ActionRow
    let encryptGroup: PreferencesGroup
    let encrypt: Switch
    let bringGroup: PreferencesGroup
    let bring: Switch
    let check: Button
    private let checks: PreferencesGroup
    private let spinner: Spinner
    private var steps: [ActionRow] = []

    init(_ interface: Interface) {
        cancel = interface.widget("cancel")
        signIn = interface.widget("sign_in")
        general = interface.widget("general")
        kind = interface.widget("kind")
        problem = interface.widget("problem")
        browserGroup = interface.widget("browser_group")
        browserRow = interface.widget("browser_row")
        browser = interface.widget("browser")
        fields = interface.widget("fields")
        warningGroup = interface.widget("warning_group")
        warning = interface.widget("warning")
        encryptGroup = interface.widget("encrypt_group")
        encrypt = interface.widget("encrypt")
        bringGroup = interface.widget("bring_group")
        bring = interface.widget("bring")
        check = interface.widget("check")
        checks = interface.widget("checks")
        spinner = interface.widget("spinner")
    }

    /// Whether the kind is shown and can't be chosen.
    var isKindFixed = false { didSet { kind.isSensitive = !isKindFixed } }

    /// Whether something is under way. If so, only Cancel takes input.
    var isBusy = false {
        didSet {
            spinner.isSpinning = isBusy
            // First, because a widget that is greyed out can't pass the focus on in order.
            if isBusy { cancel.focus() }
            for widget in [signIn, kind, browser, fields, encryptGroup, bring, check] as [Widget] {
                widget.isSensitive = !isBusy
            }
            if isKindFixed { kind.isSensitive = false }
        }
    }

    /// Moves the keyboard focus to a check's last step, which may be below the window's edge.
    func showLastStep() { steps.last?.focusInPlace() }

    /// Lists the steps of a check.
    func showSteps(_ new: [CheckStep]) {
        for row in steps { checks.remove(row) }
        steps = new.map { step in
            let row = ActionRow(title: step.title, subtitle: step.details)
            let icon = Image(icon: step.isPassed ? "emblem-ok-symbolic" : "dialog-warning-symbolic")
            icon.addStyle(step.isPassed ? "success" : "error")
            row.addPrefix(icon)
            checks.add(row)
            return row
        }
    }
}
