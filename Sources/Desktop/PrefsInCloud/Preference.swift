// SPDX-License-Identifier: Apache-2.0

internal import GLibLoop
internal import PrefsColors
internal import UbiquitousStore

/// The color, and why it is what it is: what the window shows. It decides; the window and the store act.
struct Preference: Equatable {
    /// The color that is shown.
    var color: BackgroundColor
    /// What is kept on this device for when there is no service.
    private(set) var localColor: BackgroundColor
    private(set) var lastChange = LastChange.none

    /// Why the color last changed, or why it did not.
    enum LastChange: Equatable {
        case none, here, otherDevice, otherProgram, firstDownload, otherAccount
        case refused(String)
        /// There is no service to keep it.
        case notKept
    }

    /// Shows what this device kept.
    init(localColor: BackgroundColor) {
        (color, self.localColor) = (localColor, localColor)
    }

    /// The store is open: its color counts where it has one.
    mutating func open(stored: Int?) {
        if lastChange == .notKept { lastChange = .none }
        take(stored)
    }

    /// The user chose a color.
    /// - Parameter isOpen: whether there is a store to keep it.
    mutating func choose(_ color: BackgroundColor, isOpen: Bool) {
        (self.color, localColor) = (color, color)
        lastChange = isOpen ? .here : .notKept
    }

    /// Something changed otherwise than by the user's choice here.
    /// - Parameters:
    ///   - stored: the store's number now; `nil` if it has none.
    ///   - refusal: why a write was refused.
    mutating func note(_ reason: UbiquitousStore.Change.Reason, stored: Int?, refusal: String?) {
        switch reason {
        case .initialSync: lastChange = .firstDownload
        case .otherProcess: lastChange = .otherProgram
        case .quotaViolation: lastChange = .refused(refusal ?? "")
        // A new account without a color leaves the local copy's on the screen, and out of the account.
        case .account: lastChange = .otherAccount
        default: lastChange = .otherDevice
        }
        take(stored)
    }

    /// There is no service.
    mutating func close() { lastChange = .notKept }

    /// A number that is no color changes nothing: a later version of the program may have more of them.
    private mutating func take(_ stored: Int?) {
        guard let stored, let color = BackgroundColor(rawValue: stored) else {
            if stored == nil { color = localColor }
            return
        }
        (self.color, localColor) = (color, color)
    }
}

extension Preference.LastChange {
    @MainActor var sentence: String {
        switch self {
        case .none: tr("Nothing has changed yet")
        case .here: tr("Changed here")
        case .otherDevice: tr("Changed on another device")
        case .otherProgram: tr("Changed by another program on this device")
        case .firstDownload: tr("First download complete")
        case .otherAccount: tr("Another account")
        case .refused(let reason): reason
        case .notKept: tr("Not kept: the settings service is not running")
        }
    }
}
