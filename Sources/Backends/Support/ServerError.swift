// SPDX-License-Identifier: Apache-2.0

package import HTTPClient
package import Replication

/// What all servers have in common that can be wrong with them, and the way to them.
extension RemoteError {
    /// What it means to a person that there is no answer.
    package init(_ failure: HTTPFailure) {
        switch failure {
        case .libraryMissing, .authority, .unsendable: self.init(.unsupported, failure.description)
        default: self.init(.unavailable, failure.description)
        }
    }

    package static let proxyWish = "The proxy wants a password; it is a part of the address in https_proxy."
}
