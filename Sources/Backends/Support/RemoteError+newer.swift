// SPDX-License-Identifier: Apache-2.0

package import Replication

extension RemoteError {
    /// The account has something of a format that this version does not know.
    package static let tooNew = RemoteError(
        .tooNew, "The account was written by a newer version of this service.")
}
