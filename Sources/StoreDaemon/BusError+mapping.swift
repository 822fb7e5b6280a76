// SPDX-License-Identifier: Apache-2.0

// The only place that maps errors to names on the bus.

internal import PropertyList
internal import Replication
internal import SDBus
internal import StoreBus
internal import StoreEngine
internal import SyncEngine

/// The error of a bound on all of the user's data. Sandboxed apps aren't told how much others have.
struct SharedBound: Error {
    let error: BusError
    /// The error for sandboxed apps.
    let toApps: BusError
}

extension BusError {
    /// Maps an error for a client. Sandboxed clients don't learn where the data or the account is.
    @BusActor
    init(mapping error: any Error, for client: Client) {
        if client.isSandboxed, let bound = error as? SharedBound {
            self = bound.toApps
            return
        }
        let told = BusError(mapping: error)
        self = client.isSandboxed && Self.tellsPlaces(error) ? BusError(name: told.name, message: Self.unsaid) : told
    }

    /// The error if values are not removed, because the account lacks changes of this device.
    static func notUploaded(_ count: Int) -> BusError {
        .store(.conflict, "The account does not have \(count) of this device's changes; removing them loses them.")
    }

    private static let unsaid = "Only programs outside of sandboxes are told more."

    private static func tellsPlaces(_ error: any Error) -> Bool {
        switch error {
        case is BusError, is KeyError: false
        case EngineError.storage: true
        case is EngineError: false
        default: true
        }
    }

    /// Maps an error to a bus error.
    init(mapping error: any Error) {
        switch error {
        case let error as BusError: self = error
        case let error as SharedBound: self = error.error
        case let error as EngineError: self.init(engine: error)
        case let error as RemoteError: self.init(remote: error)
        case let error as KeyError: self.init(key: error)
        case let error as PrivateFile.Failure: self = .inputOutput("\(error)")
        default: self = .failed("\(error)")
        }
    }

    static func inputOutput(_ message: String) -> BusError {
        BusError(name: "org.freedesktop.DBus.Error.IOError", message: message)
    }

    private init(engine error: EngineError) {
        self =
            switch error {
            case .key(let error): BusError(key: error)
            case .value(let key, .tooDeep(let limit)):
                .store(.depthExceeded, "The value of \"\(key)\" is nested deeper than \(limit) containers.")
            case .value(let key, let error): .store(.invalidValue, "The value of \"\(key)\" can't be stored. \(error)")
            case .quota(let violation): .store(.quotaExceeded, violation.sentence)
            case .conflict(let generation):
                .store(.conflict, "The store is at generation \(generation) already. Read it and try again.")
            case .corrupt:
                .store(.corrupt, "The user's database is damaged. The service's log has the details.")
            case .newer:
                .store(.corrupt, "The user's database was written by a newer version of the service; install that.")
            case .diskFull: .inputOutput("There is no space left for the data of this user; nothing was stored.")
            case .noRoom(let missing):
                .inputOutput(
                    """
                    All of the user's values have to be written again, and the disk with the service's data has no room \
                    for that: \((missing >> 20) + 1) MiB are missing. Nothing was changed; free some space, and try again.
                    """)
            case .storage(let reason): .inputOutput("The service's data can't be read or written: \(reason).")
            }
    }

    private init(key error: KeyError) {
        self =
            switch error {
            case .tooLong: .store(.keyTooLong, "\(error)")
            case .empty, .containsNUL, .containsNoncharacter: .store(.invalidKey, "\(error)")
            }
    }

    init(remote error: RemoteError) {
        let sentence = error.advised
        self =
            switch error.code {
            case .unavailable: .store(.backendUnavailable, sentence)
            case .unauthorized: .store(.backendAuthenticationFailed, sentence)
            case .denied: .accessDenied(sentence)
            case .full: .store(.backendFull, sentence)
            case .noAccount: .store(.noAccount, sentence)
            case .reset: .store(.remoteReset, sentence)
            case .tooNew: .store(.remoteFormatTooNew, sentence)
            case .damaged: .store(.corrupt, sentence)
            case .unsupported: .store(.backendUnsupported, sentence)
            case .keyNeeded: .store(.keyNeeded, sentence)
            case .keyWrong: .store(.keyWrong, sentence)
            case .unencrypted, .otherKeys: .store(.conflict, sentence)
            case .device: .inputOutput(sentence)
            }
    }
}

extension RemoteError {
    /// The message, with what the user can do about it. Where there is no account, there is nothing to settle yet.
    var advised: String {
        guard let reason, code != .noAccount else { return message }
        return "\(message) \(reason.advice)"
    }
}

extension RemoteError.Reason {
    fileprivate var advice: String {
        switch self {
        case .folderMissing:
            "If it was deleted, \"ubiquitousctl account resolve local\" creates it again from this device."
        case .firstPartsMissing:
            "If they never will, \"ubiquitousctl account resolve local\" continues without them."
        case .partsMissing: "If the device that has them is lost, \"ubiquitousctl account forget\" ends the wait."
        case .accountReplaced: "Say which side is right with \"ubiquitousctl account resolve\"."
        case .markerDamaged:
            """
            If it stays so, "ubiquitousctl account resolve local" on a device of the account writes it again; if no device \
            is in an account there, remove what the folder contains.
            """
        case .listsNothing: "Make the server list folders again, as it did when the account was made."
        case .keyReplaced:
            """
            If nobody has it, "ubiquitousctl account replace-key" gives the account another key, without what was uploaded \
            under this one.
            """
        case .authorityUnknown:
            """
            "ubiquitousctl account renew --ca-file FILE" gives it to an account that is signed in.
            """
        }
    }
}

extension QuotaViolation {
    /// The limit, what is used of it, its value, and what the write needs.
    var sentence: String {
        switch limit {
        case .keys:
            "The store has \(used) keys of \(maximum) (limit keys), and with the write it would have \(needed)."
        case .totalBytes:
            """
            The store's values take \(used) of \(maximum) bytes (limit total-bytes), and with the write they would take \
            \(needed).
            """
        case .valueBytes:
            "A value may have \(maximum) bytes (limit value-bytes), and this one needs \(needed)."
        }
    }
}
