// SPDX-License-Identifier: Apache-2.0

public import Foundation

// The notifications of the class for observers of messages. On Linux, Foundation knows a message by its type and does
// not translate between the two forms, so each is posted.

extension UserDefaults {
    /// ``didChangeNotification`` as a message: this process changed a setting. The subject is the object that was used.
    public struct DidChangeMessage: NotificationCenter.AsyncMessage {
        /// What is observed.
        public typealias Subject = UserDefaults

        /// The notification's name.
        public static var name: Notification.Name { UserDefaults.didChangeNotification }

        /// A message.
        public init() {}
    }

    /// ``sizeLimitExceededNotification`` as a message, without a subject: a write was taken back, since a domain would
    /// be too large.
    public struct SizeLimitExceededMessage: NotificationCenter.AsyncMessage {
        /// What is observed.
        public typealias Subject = UserDefaults

        /// The notification's name.
        public static var name: Notification.Name { UserDefaults.sizeLimitExceededNotification }

        /// A message.
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
    /// ``UserDefaults/DidChangeMessage``.
    public static var didChange: Self { .init() }
}

extension NotificationCenter.MessageIdentifier
where Self == NotificationCenter.BaseMessageIdentifier<UserDefaults.SizeLimitExceededMessage> {
    /// ``UserDefaults/SizeLimitExceededMessage``.
    public static var sizeLimitExceeded: Self { .init() }
}
