// SPDX-License-Identifier: Apache-2.0

package import HTTPClient
package import Replication

/// Errors of servers, and of the way to them, that all backends share.
extension RemoteError {
    /// Makes an error for the user from the reason why there is no response.
    package init(_ failure: HTTPFailure) {
        switch failure {
        case .libraryMissing, .authority, .unsendable: self.init(.unsupported, failure.description)
        default:
            self.init(
                .unavailable, failure.description, reason: failure.isAuthorityUnknown ? .authorityUnknown : nil)
        }
    }

    package static let proxyWish = "The proxy requires a password: add it to the address in https_proxy."
}
