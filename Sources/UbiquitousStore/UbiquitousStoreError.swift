// SPDX-License-Identifier: Apache-2.0

internal import SDBus
internal import StoreBus

/// Why the service, or the way to it, didn't do what was asked.
///
/// Programs look at ``code``, people read ``message``.
public struct UbiquitousStoreError: Error, Sendable {
    /// What kind of error it is. There may be more of them in later versions.
    public let code: Code
    /// A sentence that says what is wrong. It holds nothing of any value.
    public let message: String
    /// What this error was made of, for logs; as the error that came over the bus.
    public let cause: (any Error)?

    /// Makes an error; for tests of what an app does with one.
    public init(_ code: Code, _ message: String, cause: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.cause = cause
    }
}

extension UbiquitousStoreError {
    /// A kind of error.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        /// The word, as `quotaExceeded`.
        public let description: String

        private init(_ word: String) { description = word }

        // MARK: Keys and values

        /// The store has no value for the key, where one has to be there.
        public static let noSuchKey = Code("noSuchKey")
        /// The key is empty or has a U+0000.
        public static let invalidKey = Code("invalidKey")
        /// The key is longer than 128 UTF-16 code units.
        public static let keyTooLong = Code("keyTooLong")
        /// The value is no property list, or holds what a store can't.
        public static let invalidValue = Code("invalidValue")
        /// The value is nested deeper than 16 containers.
        public static let depthExceeded = Code("depthExceeded")
        /// The write breaks a limit of the store; the message says which one.
        public static let quotaExceeded = Code("quotaExceeded")
        /// What is stored isn't what the key's type says.
        public static let typeMismatch = Code("typeMismatch")
        /// A condition of the call doesn't hold.
        public static let conflict = Code("conflict")

        // MARK: Stores

        /// No installed manifest declares the identifier for this program.
        public static let notEntitled = Code("notEntitled")
        /// It can't be told which app, or in which sandbox, this program is.
        public static let identityUnknown = Code("identityUnknown")
        /// This program has no default store, or several fit.
        public static let ambiguousIdentity = Code("ambiguousIdentity")
        /// The identifier holds nothing.
        public static let noSuchStore = Code("noSuchStore")
        /// The database was damaged, and its values are on their way from the account's remote.
        public static let corrupt = Code("corrupt")

        // MARK: Accounts

        /// Nobody has signed in to an account on this device.
        public static let notSignedIn = Code("notSignedIn")
        /// The remote is there, and has no account.
        public static let noAccount = Code("noAccount")
        /// The server or folder can't be reached, or sync is paused.
        public static let backendUnavailable = Code("backendUnavailable")
        /// The server refuses the credentials.
        public static let backendAuthenticationFailed = Code("backendAuthenticationFailed")
        /// No space is left in the remote.
        public static let backendFull = Code("backendFull")
        /// The service has no backend for the URL's scheme.
        public static let backendUnsupported = Code("backendUnsupported")
        /// A newer version wrote the remote.
        public static let remoteFormatTooNew = Code("remoteFormatTooNew")
        /// The remote was emptied, or is another account's.
        public static let remoteReset = Code("remoteReset")

        // MARK: The service

        /// There is no bus, or nobody on it has the service's name, or the service went before it answered.
        public static let serviceUnavailable = Code("serviceUnavailable")
        /// The service didn't answer in time.
        public static let timedOut = Code("timedOut")
        /// Another call of this kind is under way.
        public static let busy = Code("busy")
        /// More calls, subscriptions or data than one program may have.
        public static let limitsExceeded = Code("limitsExceeded")
        /// This program may not do that.
        public static let accessDenied = Code("accessDenied")
        /// An argument isn't right; the message says which one.
        public static let invalidArguments = Code("invalidArguments")
        /// There is no such object for this program.
        public static let unknownObject = Code("unknownObject")
        /// This version of the service doesn't do that.
        public static let notSupported = Code("notSupported")
        /// The service can't write: its disk is full, or fails. Nothing was stored.
        public static let storageFailed = Code("storageFailed")
        /// Something else; look at the message and the cause.
        public static let other = Code("other")
    }
}

extension UbiquitousStoreError: CustomStringConvertible {
    /// The sentence, and the code in parentheses.
    public var description: String { "\(message) (\(code))" }
}

// MARK: From the bus

extension UbiquitousStoreError {
    /// What an error of the bus or of the service means to an app. An error that isn't of the bus stays what it is.
    static func mapping(_ error: any Error) -> any Error {
        guard let error = error as? BusError else { return error }
        // What libsystemd says of a call whose time is up; from the bus that name means that the service has gone.
        let code = error == .noReply("Method call timed out") ? .timedOut : code(of: error.name)
        return UbiquitousStoreError(code, error.message, cause: error)
    }

    private static func code(of name: String) -> Code {
        let word = String(name.split(separator: ".").last ?? "")
        guard let own = StoreErrorCode(rawValue: word), own.name == name else { return standardCodes[word] ?? .other }
        return own.publicCode
    }

    /// Of the names of the D-Bus Specification and of sd-bus.
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
        case .busy: .busy
        case .corrupt: .corrupt
        }
    }
}
