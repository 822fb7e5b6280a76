// SPDX-License-Identifier: Apache-2.0

package import Replication

extension RemoteError {
    /// The error for an account with something in a format that this version doesn't know.
    package static let tooNew = RemoteError(
        .tooNew, "The account was written by a newer version of this service.")
}
