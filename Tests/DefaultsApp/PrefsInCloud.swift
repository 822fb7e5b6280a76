// SPDX-License-Identifier: Apache-2.0

// The preference code of Apple's sample "Synchronizing App Preferences with iCloud": a colour in UserDefaults, and in the
// store for the other devices. Blocks replace selectors.

import Foundation
import UbiquitousStore

let gBackgroundColorKey = "backgroundColor"

enum ColorIndex: Int {
    case white = 0, red, green, yellow
}

final class PrefsInCloud {
    private var observer: NSObjectProtocol?
    var update: (Int) -> Void = { _ in }

    var chosenColorValue: Int {
        get { UserDefaults.standard.integer(forKey: gBackgroundColorKey) }
        set {
            UserDefaults.standard.set(newValue, forKey: gBackgroundColorKey)
            NSUbiquitousKeyValueStore.default.set(newValue, forKey: gBackgroundColorKey)
            update(newValue)
        }
    }

    func prepareKeyValueStoreForUse() {
        UserDefaults.standard.register(defaults: [gBackgroundColorKey: ColorIndex.white.rawValue])
        observer = NotificationCenter.default.addObserver(
            forName: NSUbiquitousKeyValueStore.didChangeExternallyNotification,
            object: NSUbiquitousKeyValueStore.default, queue: .main
        ) { [weak self] in self?.ubiquitousKeyValueStoreDidChange($0) }
        if NSUbiquitousKeyValueStore.default.synchronize() == false {
            fatalError("This app was not built with the proper entitlement requests.")
        }
    }

    func ubiquitousKeyValueStoreDidChange(_ notification: Notification) {
        guard let userInfo = notification.userInfo else { return }
        guard let reasonForChange = userInfo[NSUbiquitousKeyValueStoreChangeReasonKey] as? Int else { return }
        guard let keys = userInfo[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String] else { return }
        guard keys.contains(gBackgroundColorKey) else { return }
        if reasonForChange == NSUbiquitousKeyValueStoreAccountChange {
            return update(chosenColorValue)
        }
        let possibleColorIndexFromiCloud = NSUbiquitousKeyValueStore.default.longLong(forKey: gBackgroundColorKey)
        if let validColorIndex = ColorIndex(rawValue: Int(possibleColorIndexFromiCloud)) {
            UserDefaults.standard.set(validColorIndex.rawValue, forKey: gBackgroundColorKey)
            update(validColorIndex.rawValue)
        }
    }
}
