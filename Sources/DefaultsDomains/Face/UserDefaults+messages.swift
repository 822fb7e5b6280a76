// SPDX-License-Identifier: Apache-2.0

public import Foundation

// The class's notifications as messages. On Linux, Foundation identifies a message by its type and doesn't translate
// between messages and notifications, so this library posts both.

extension UserDefaults {
    /// ``didChangeNotification`` as a message: this process changed a setting. The subject is the `UserDefaults` that
    /// was used.
    public struct DidChangeMessage: NotificationCenter.AsyncMessage {
        /// The type of the observed object.
        public typealias Subject = UserDefaults

        /// The notification's name.
        public static var name: Notification.Name { UserDefaults.didChangeNotification }

        /// Makes a message.
        public init() {}
    }

    /// ``sizeLimitExceededNotification`` as a message, without a subject: a write was reverted because the domain would
    /// become too large.
    public struct SizeLimitExceededMessage: NotificationCenter.AsyncMessage {
        /// The type of the observed object.
        public typealias Subject = UserDefaults

        /// The notification's name.
        public static var name: Notification.Name { UserDefaults.sizeLimitExceededNotification }

        /// Makes a message.
        public init() {}
    }

    func postDidChange() {
        NotificationCenter.default.post(name: Self.didChangeNotification, object: self)
        NotificationCenter.default.post(DidChangeMessage(), subject: self)
    }

    static func post(_ name: NSNotification.Name) { NotificationCenter.default.post(name: name, object: nil) }

    static func postSizeLimitExceeded() {
        post(sizeLimitExceededNotification)
        NotificationCenter.default.post(SizeLimitExceededMessage())
    }
}

extension NotificationCenter.MessageIdentifier
where Self == NotificationCenter.BaseMessageIdentifier<UserDefaults.DidChangeMessage> {
    /// The identifier of ``UserDefaults/DidChangeMessage``.
    public static var didChange: Self { .init() }
}

extension NotificationCenter.MessageIdentifier
where Self == NotificationCenter.BaseMessageIdentifier<UserDefaults.SizeLimitExceededMessage> {
    /// The identifier of ``UserDefaults/SizeLimitExceededMessage``.
    public static var sizeLimitExceeded: Self { .init() }
}
