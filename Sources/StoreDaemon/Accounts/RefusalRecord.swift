// SPDX-License-Identifier: Apache-2.0

internal import Files
internal import Glibc
internal import Replication

/// Remembers over restarts of the service when a remote refused an account's credentials. Servers lock out whoever
/// repeats a wrong password, so each start must not try it again.
struct RefusalRecord {
    private let path: String
    /// When the credentials were refused, in seconds since 1970; `nil` if they weren't.
    private var time: UInt64?

    init(in directory: String) {
        path = directory + "/refused-credentials"
        time = Files.text(of: path, atMost: 32).flatMap { UInt64($0) }
    }

    /// Returns the error with which an account resumes; `nil` if its credentials may be tried.
    /// - Parameter now: the time in seconds since 1970.
    func error(_ now: UInt64) -> RemoteError? {
        guard let time, time <= now, now - time < Self.rest else { return nil }
        return RemoteError(
            .unauthorized,
            "The server refused the credentials before this start. They are tried again within the hour, or at once with "
                + "\"ubiquitousctl account sync\".", retryAfter: Int(Self.rest - (now - time)))
    }

    /// Notes the error with which a sync cycle has ended; `nil` if it has succeeded.
    mutating func note(_ error: RemoteError?, _ now: UInt64) {
        if error?.code == .unauthorized {
            time = now
            do throws(SystemError) { try Files.overwrite(path, with: "\(now)") } catch {}
        } else if error == nil, time != nil {
            time = nil
            unlink(path)
        }
    }

    /// For how long refused credentials are left alone, in seconds.
    private static let rest = UInt64(RemoteError(.unauthorized, "").leastRest ?? 3600)
}
