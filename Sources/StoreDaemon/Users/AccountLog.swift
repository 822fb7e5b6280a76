// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import Replication

/// Decides what is logged of an account: a line for each change between working and each kind of failure.
///
/// It is a value without a clock, and limits the lines per hour, so that a remote that comes and goes doesn't fill the
/// journal.
struct AccountLog {
    struct Line: Equatable {
        let level: Logger.Level
        let text: String
    }

    private var trouble: RemoteError.Code?
    /// The times of the lines of the last hour, in microseconds.
    private var recent: [UInt64] = []
    private var left = 0

    private static let hour: UInt64 = 3_600_000_000
    private static let linesAnHour = 12

    /// Notes the account's present state.
    ///
    /// - Parameters:
    ///   - error: what prevents sync; `nil` if nothing does.
    ///   - name: the user's name.
    ///   - now: microseconds of a monotonic clock.
    mutating func note(_ error: RemoteError?, ofUser name: String, _ now: UInt64) -> Line? {
        guard error?.code != trouble else { return nil }
        trouble = error?.code
        recent.removeAll { now >= $0 && now - $0 >= Self.hour }
        guard recent.count < Self.linesAnHour else {
            left += 1
            return nil
        }
        recent.append(now)
        let omission = left == 0 ? "" : " (\(left) changes before this one were not logged.)"
        left = 0
        guard let error else { return Line(level: .notice, text: "The account of \(name) works again.\(omission)") }
        let text = "The account of \(name): \(error.code.words): \(error.message)\(omission)"
        return Line(level: error.code == .unavailable ? .notice : .warning, text: text)
    }
}

extension RemoteError.Code {
    fileprivate var words: String {
        switch self {
        case .unavailable: "the remote is away"
        case .unauthorized: "the credentials are refused"
        case .denied: "the place may not be used"
        case .full: "the remote is full"
        case .noAccount: "there is no account in the remote"
        case .reset: "the remote was emptied, or is another account's"
        case .tooNew: "a newer version wrote the remote"
        case .damaged: "what is there can't be read"
        case .unsupported: "there is no backend for it"
        case .keyNeeded: "its key is not here"
        case .keyWrong: "the recovery phrase is another one's"
        case .otherKeys: "it is under several keys"
        case .inPlain: "it is not encrypted"
        case .device: "this device can't write"
        }
    }
}
