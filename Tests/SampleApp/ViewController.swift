// SPDX-License-Identifier: Apache-2.0

// As in an app for Apple's systems: what Apple's sample "Synchronizing App Preferences with iCloud" does, with
// UbiquitousStore imported, and a block in place of a selector. It is compiled in Swift 5 mode, like such code.

import Foundation
import UbiquitousStore

let gBackgroundColorKey = "backgroundColor"

class ViewController {
    var chosenColorValue: Int = 0 {
        didSet { print("colour \(chosenColorValue)") }
    }
    private var observer: NSObjectProtocol?

    func prepareKeyValueStoreForUse() {
        observer = NotificationCenter.default.addObserver(
            forName: NSUbiquitousKeyValueStore.didChangeExternallyNotification,
            object: NSUbiquitousKeyValueStore.default,
            queue: .main
        ) { [weak self] notification in
            self?.ubiquitousKeyValueStoreDidChange(notification)
        }

        if NSUbiquitousKeyValueStore.default.synchronize() == false {
            fatalError("This app was not built with the proper entitlement requests.")
        }
    }

    func ubiquitousKeyValueStoreDidChange(_ notification: Notification) {
        guard let userInfo = notification.userInfo else { return }

        // Get the reason for the notification (initial download, external change or quota violation change).
        guard let reasonForChange = userInfo[NSUbiquitousKeyValueStoreChangeReasonKey] as? Int else { return }

        guard let keys = userInfo[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String] else { return }

        guard keys.contains(gBackgroundColorKey) else { return }

        switch reasonForChange {
        case NSUbiquitousKeyValueStoreServerChange, NSUbiquitousKeyValueStoreInitialSyncChange:
            let possibleColorIndexFromiCloud = NSUbiquitousKeyValueStore.default.longLong(forKey: gBackgroundColorKey)
            if let validColorIndex = Int(exactly: possibleColorIndexFromiCloud) {
                chosenColorValue = validColorIndex
            }
        case NSUbiquitousKeyValueStoreAccountChange:
            chosenColorValue = 0
        default:
            print("over quota")
        }
    }

    func choose(_ color: Int) {
        chosenColorValue = color
        NSUbiquitousKeyValueStore.default.set(chosenColorValue, forKey: gBackgroundColorKey)
    }
}
