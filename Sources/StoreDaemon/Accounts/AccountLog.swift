// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import Replication

/// Decides what is logged of an account: a line for each change between working and each kind of failure, and for what
/// the user does with it.
///
/// It is a value without a clock, and limits the lines of either kind per hour, so that neither a remote that comes and
/// goes nor a program of the user's fills the journal.
struct AccountLog {
    struct Line: Equatable {
        let level: Logger.Level
        let text: String
    }

    private var trouble: RemoteError.Code?
    private var changes = HourlyLines()
    private var acts = HourlyLines()

    /// Notes something that the user has done with the account.
    /// - Returns: the line; `nil` if there were too many in the last hour.
    mutating func note(act text: String, _ now: UInt64) -> Line? {
        acts.admit(now).map { Line(level: .notice, text: text + Self.omission($0, of: "line")) }
    }

    /// Forgets what prevented sync, because the user has signed out.
    mutating func forget() { trouble = nil }

    /// Notes the account's present state.
    ///
    /// - Parameters:
    ///   - error: what prevents sync; `nil` if nothing does.
    ///   - name: the user's name.
    ///   - now: microseconds of a monotonic clock.
    mutating func note(_ error: RemoteError?, ofUser name: String, _ now: UInt64) -> Line? {
        guard error?.code != trouble else { return nil }
        trouble = error?.code
        guard let left = changes.admit(now) else { return nil }
        let omission = Self.omission(left, of: "change")
        guard let error else { return Line(level: .notice, text: "The account of \(name) works again.\(omission)") }
        let text = "The account of \(name): \(error.code.words): \(error.advised)\(omission)"
        return Line(level: error.code == .unavailable ? .notice : .warning, text: text)
    }

    /// Says how many were left out; empty if none were.
    static func omission(_ left: Int, of noun: String) -> String {
        switch left {
        case 0: ""
        case 1: " (One \(noun) before this one was not logged.)"
        default: " (\(left) \(noun)s before this one were not logged.)"
        }
    }
}

/// Limits how many lines are logged per hour.
private struct HourlyLines {
    /// The times of the lines of the last hour, in microseconds.
    private var recent: [UInt64] = []
    private var left = 0

    private static let hour: UInt64 = 3_600_000_000
    private static let most = 12

    /// Notes a line that is to be logged.
    /// - Returns: how many lines were left out since the last one that was logged; `nil` if this one is, too.
    mutating func admit(_ now: UInt64) -> Int? {
        recent.removeAll { now >= $0 && now - $0 >= Self.hour }
        guard recent.count < Self.most else {
            left += 1
            return nil
        }
        recent.append(now)
        defer { left = 0 }
        return left
    }
}

extension RemoteError.Code {
    fileprivate var words: String {
        switch self {
        case .unavailable: "the remote can't be reached"
        case .unauthorized: "the credentials are refused"
        case .denied: "the remote may not be used"
        case .full: "the remote is full"
        case .noAccount: "there is no account in the remote"
        case .reset: "the remote was emptied, or belongs to another account"
        case .tooNew: "a newer version wrote the remote"
        case .damaged: "the remote's data can't be read"
        case .unsupported: "there is no backend for it"
        case .keyNeeded: "this device doesn't have its key"
        case .keyWrong: "the recovery phrase belongs to another account"
        case .otherKeys: "it is under several keys"
        case .unencrypted: "it is not encrypted"
        case .device: "this device can't write"
        }
    }
}
