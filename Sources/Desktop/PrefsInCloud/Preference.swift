// SPDX-License-Identifier: Apache-2.0

internal import GLibLoop
internal import PrefsColors
internal import UbiquitousStore

/// The color that the window shows, and why it changed last. This type decides; the window and the store act.
struct Preference: Equatable {
    /// The color that is shown.
    var color: BackgroundColor
    /// The color kept on this device, for when there is no service.
    private(set) var localColor: BackgroundColor
    /// The color before the user's choices that may still be refused.
    private var formerColor: BackgroundColor
    /// Whether the color was chosen while there was no service, and is still to be passed on.
    private(set) var isPending: Bool
    private(set) var lastChange = LastChange.none

    /// Why the color last changed, or why it did not.
    enum LastChange: Equatable {
        case none, here, otherDevice, otherProgram, firstDownload, otherAccount
        /// The store has no room.
        case refused
        /// There is no service to keep the color.
        case notKept
    }

    /// Starts with what is kept on this device.
    init(localColor: BackgroundColor, isPending: Bool = false) {
        (color, self.localColor, formerColor, self.isPending) = (localColor, localColor, localColor, isPending)
    }

    /// Takes the color of the store, which was opened or has its service again, if it has one.
    /// - Returns: whether the color that is shown is to be stored, because the user chose it before.
    mutating func open(stored: Int?) -> Bool {
        let isChosen = isPending && (stored == nil || stored == color.rawValue)
        isPending = false
        if isChosen || lastChange == .notKept { lastChange = isChosen ? .here : .none }
        take(isChosen ? color.rawValue : stored)
        formerColor = localColor
        return isChosen
    }

    /// Takes the color that the user chose.
    /// - Parameter isOpen: whether there is a service to keep it.
    mutating func choose(_ color: BackgroundColor, isOpen: Bool) {
        (self.color, localColor, isPending) = (color, color, !isOpen)
        lastChange = isOpen ? .here : .notKept
    }

    /// Takes a change that the user did not make here.
    /// - Parameters:
    ///   - stored: the store's present number; `nil` if it has none.
    mutating func note(_ reason: UbiquitousStore.Change.Reason, stored: Int?) {
        switch reason {
        case .initialSync: lastChange = .firstDownload
        case .otherProcess: lastChange = .otherProgram
        case .quotaViolation:
            lastChange = .refused
            if stored == nil { localColor = formerColor }
        // If a new account has no color, the local copy stays on the screen, and out of the account.
        case .account: lastChange = .otherAccount
        default: lastChange = .otherDevice
        }
        take(stored)
        formerColor = localColor
    }

    /// Takes the store's number. One that is no color changes nothing, because later versions may have more colors.
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
        case .refused: tr("Not kept: the store of this app is full")
        case .notKept: tr("Not kept: the settings can't be opened")
        }
    }
}
