// SPDX-License-Identifier: Apache-2.0

internal import SDBus
internal import StoreBus

/// Why a call to the service failed.
///
/// Programs check ``code``; ``message`` is for users.
public struct UbiquitousStoreError: Error, Sendable {
    /// The kind of error. Later versions may add more.
    public let code: Code
    /// A sentence that says what is wrong. It never contains a value.
    public let message: String
    /// The underlying error, such as the one from the bus, for logs.
    public let cause: (any Error)?

    /// Makes an error, to test how an app handles it.
    public init(_ code: Code, _ message: String, cause: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.cause = cause
    }
}

extension UbiquitousStoreError {
    /// A kind of error.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        /// The name, such as `quotaExceeded`.
        public let description: String

        private init(_ word: String) { description = word }

        // MARK: Keys and values

        /// The store has no value for the key, and one is required.
        public static let noSuchKey = Code("noSuchKey")
        /// The key is empty, or has a U+0000 or a noncharacter.
        public static let invalidKey = Code("invalidKey")
        /// The key is longer than 128 UTF-16 code units.
        public static let keyTooLong = Code("keyTooLong")
        /// The value is no property list, or contains something that a store can't hold.
        public static let invalidValue = Code("invalidValue")
        /// The value is nested deeper than 16 containers.
        public static let depthExceeded = Code("depthExceeded")
        /// The write exceeds a limit of the store; the message says which one.
        public static let quotaExceeded = Code("quotaExceeded")
        /// The stored value doesn't have the key's type.
        public static let typeMismatch = Code("typeMismatch")
        /// A condition of the call doesn't hold.
        public static let conflict = Code("conflict")

        // MARK: Stores

        /// No installed manifest declares the identifier for this program.
        public static let notEntitled = Code("notEntitled")
        /// The service can't identify this program's app or sandbox.
        public static let identityUnknown = Code("identityUnknown")
        /// This program has no default store, or several match.
        public static let ambiguousIdentity = Code("ambiguousIdentity")
        /// The identifier holds nothing.
        public static let noSuchStore = Code("noSuchStore")
        /// The database was damaged, and its values are on their way from the account's remote.
        public static let corrupt = Code("corrupt")

        // MARK: Accounts

        /// The user has no account on this device.
        public static let notSignedIn = Code("notSignedIn")
        /// The remote exists, but has no account.
        public static let noAccount = Code("noAccount")
        /// The server or folder can't be reached, or sync is paused.
        public static let backendUnavailable = Code("backendUnavailable")
        /// The server refuses the credentials.
        public static let backendAuthenticationFailed = Code("backendAuthenticationFailed")
        /// The remote has no space left.
        public static let backendFull = Code("backendFull")
        /// The service has no backend for the URL's scheme.
        public static let backendUnsupported = Code("backendUnsupported")
        /// A newer version wrote the remote.
        public static let remoteFormatTooNew = Code("remoteFormatTooNew")
        /// The remote was emptied, or holds another account.
        public static let remoteReset = Code("remoteReset")
        /// The account is encrypted, and this device does not have its key.
        public static let keyNeeded = Code("keyNeeded")
        /// The recovery phrase is another account's.
        public static let keyWrong = Code("keyWrong")

        // MARK: The service

        /// There is no bus, no service on it, or the service went away before it replied.
        public static let serviceUnavailable = Code("serviceUnavailable")
        /// The service didn't answer in time.
        public static let timedOut = Code("timedOut")
        /// Another call of this kind is under way.
        public static let busy = Code("busy")
        /// More calls, subscriptions or data than one program may have.
        public static let limitsExceeded = Code("limitsExceeded")
        /// This program may not do that.
        public static let accessDenied = Code("accessDenied")
        /// An argument is invalid; the message says which one.
        public static let invalidArguments = Code("invalidArguments")
        /// There is no such object for this program.
        public static let unknownObject = Code("unknownObject")
        /// This version of the service doesn't support that.
        public static let notSupported = Code("notSupported")
        /// The service can't write because its disk is full or failing. Nothing was stored.
        public static let storageFailed = Code("storageFailed")
        /// Another error; see the message and the cause.
        public static let other = Code("other")
    }
}

extension UbiquitousStoreError: CustomStringConvertible {
    /// The sentence, and the code in parentheses.
    public var description: String { "\(message) (\(code))" }
}

// MARK: From the bus

extension UbiquitousStoreError {
    /// Converts an error of the bus or of the service. Other errors stay as they are.
    static func mapping(_ error: any Error) -> any Error {
        guard let error = error as? BusError else { return error }
        // libsystemd's error for a timeout; from the bus the same name means that the service is gone.
        let code = error == .noReply("Method call timed out") ? .timedOut : code(of: error.name)
        return UbiquitousStoreError(code, sentences[error.name] ?? error.message, cause: error)
    }

    /// Sentences in place of those that a bus has for other programs' developers.
    private static let sentences = [
        "org.freedesktop.DBus.Error.ServiceUnknown": "The service isn't running, and isn't installed for this bus.",
        "org.freedesktop.DBus.Error.NameHasNoOwner": "The service isn't running.",
    ]

    /// Returns the code of an error's name on the bus; `nil` for "".
    static func code(named name: String) -> Code? { name.isEmpty ? nil : code(of: name) }

    private static func code(of name: String) -> Code {
        let word = String(name.split(separator: ".").last ?? "")
        guard let own = StoreErrorCode(rawValue: word), own.name == name else { return standardCodes[word] ?? .other }
        return own.publicCode
    }

    /// The codes of the errors of the D-Bus specification and of sd-bus, by the last part of their names.
    private static let standardCodes: [String: Code] = [
        "ServiceUnknown": .serviceUnavailable, "NameHasNoOwner": .serviceUnavailable, "NoReply": .serviceUnavailable,
        "Disconnected": .serviceUnavailable, "NoServer": .serviceUnavailable, "FileNotFound": .serviceUnavailable,
        "ECONNREFUSED": .serviceUnavailable, "ChildExited": .serviceUnavailable, "Failed": .other,
        "ENOTCONN": .serviceUnavailable, "ECONNRESET": .serviceUnavailable, "EPIPE": .serviceUnavailable,
        "Timeout": .timedOut, "TimedOut": .timedOut, "ETIMEDOUT": .timedOut, "AccessDenied": .accessDenied,
        "InvalidArgs": .invalidArguments, "UnknownObject": .unknownObject, "NotSupported": .notSupported,
        "UnknownMethod": .notSupported, "UnknownInterface": .notSupported, "LimitsExceeded": .limitsExceeded,
        "IOError": .storageFailed,
    ]
}

extension StoreErrorCode {
    fileprivate var publicCode: UbiquitousStoreError.Code {
        switch self {
        case .noSuchKey: .noSuchKey
        case .invalidKey: .invalidKey
        case .keyTooLong: .keyTooLong
        case .invalidValue: .invalidValue
        case .depthExceeded: .depthExceeded
        case .quotaExceeded: .quotaExceeded
        case .notEntitled: .notEntitled
        case .identityUnknown: .identityUnknown
        case .ambiguousIdentity: .ambiguousIdentity
        case .noSuchStore: .noSuchStore
        case .conflict: .conflict
        case .notSignedIn: .notSignedIn
        case .noAccount: .noAccount
        case .backendUnavailable: .backendUnavailable
        case .backendAuthenticationFailed: .backendAuthenticationFailed
        case .backendFull: .backendFull
        case .backendUnsupported: .backendUnsupported
        case .remoteFormatTooNew: .remoteFormatTooNew
        case .remoteReset: .remoteReset
        case .keyNeeded: .keyNeeded
        case .keyWrong: .keyWrong
        case .busy: .busy
        case .corrupt: .corrupt
        }
    }
}
