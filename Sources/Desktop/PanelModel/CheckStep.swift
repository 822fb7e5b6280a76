// SPDX-License-Identifier: Apache-2.0

internal import GLibLoop
internal import ServiceMessages
package import UbiquitousStore

/// A step of a check, in words.
package struct CheckStep: Equatable, Sendable {
    /// The step and its outcome.
    package var title: String
    /// What was found, as the service says it.
    package var details: String
    package var isPassed: Bool

    package init(_ step: BackendStep) {
        let name = Self.name(step.step)
        title = step.isRight ? tr("%1: OK", name) : tr("%1: failed", name)
        (details, isPassed) = (ServiceMessages.localized(step.detail).shown, step.isRight)
    }

    /// Returns the name of a step for users; the service's own name if the step is of years to come.
    private static func name(_ step: String) -> String {
        switch step {
        case "address": tr("Address")
        case "connect": tr("Connection")
        case "time": tr("Answer in Time")
        case "version": tr("Version of the Server")
        case "clock": tr("Clock of the Server")
        case "sign in": tr("User and Password")
        case "open", "folder": tr("Folder")
        case "conditions": tr("Protection Against Simultaneous Changes")
        case "write": tr("Writing")
        case "read": tr("Reading")
        case "overwrite": tr("Replacing")
        case "list": tr("Listing")
        case "delete": tr("Removing")
        case "space": tr("Space")
        case "account": tr("Account")
        case "key": tr("Recovery Words")
        case "leftovers": tr("Leftovers")
        case "encryption": tr("Encryption")
        case "credentials": tr("Credentials of This Device")
        default: step.shown
        }
    }
}
