// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import PlainText
internal import PropertyList
internal import StoreBus
internal import Synchronization

/// Posts a store's announcements as Apple's notification.
final class NotificationPoster: Sendable {
    private let registration = Mutex<UUID?>(nil)

    /// Begins to post a store's announcements; `object` is the notifications' object.
    func post(_ store: SharedStore, about object: NSUbiquitousKeyValueStore) {
        let observer = store.observe { [weak object] announcement in
            guard let object else { return }
            NotificationCenter.default.post(
                name: NSUbiquitousKeyValueStore.didChangeExternallyNotification, object: object,
                userInfo: Self.userInfo(announcement))
        }
        registration.withLock { $0 = observer }
    }

    /// Stops posting.
    func stop(_ store: SharedStore) {
        if let observer = registration.withLock({ $0 }) { store.stopObserving(observer) }
    }

    static func userInfo(_ announcement: Announcement) -> [AnyHashable: Any] {
        // Apple has no reason for another process; to an app both mean that it should check the keys.
        let reason = announcement.reason == ChangeReason.local ? ChangeReason.server : announcement.reason
        var info: [AnyHashable: Any] = [
            NSUbiquitousKeyValueStoreChangedKeysKey: announcement.changes.map(\.key.string)
        ]
        // Apple has no reason for a write that is ignored, and code for its systems ignores a notification without one.
        if reason != ChangeReason.invalidWrite { info[NSUbiquitousKeyValueStoreChangeReasonKey] = Int(reason) }
        info[NSUbiquitousKeyValueStoreErrorKey] = announcement.error
        return info
    }
}

extension SharedStore {
    /// Reports in the log and to observers that a write was refused locally. Its key stays as it was.
    func announce(refusing name: String, _ error: any Error) {
        let error = error as? UbiquitousStoreError ?? UbiquitousStoreError(.other, "\(error)", cause: error)
        error.log()
        let key = Text(name)
        let value = value(name)
        announce(
            Announcement(
                reason: ChangeReason.of(error), changes: [KeyChange(key: key, old: value, new: value)],
                error: error))
    }
}

extension UbiquitousStoreError {
    /// Writes the error to standard error, for members that can't throw.
    func log() { logLine("UbiquitousStore: \(self)") }
}

/// Writes a line to standard error, truncated and cleaned: a key in it may be long and contain control characters.
package func logLine(_ line: String) {
    try? FileHandle.standardError.write(contentsOf: Data("\(line.cleaned(atMost: 2048))\n".utf8))
}
