// SPDX-License-Identifier: Apache-2.0

internal import HTTPClient
internal import Replication

/// What all servers have in common that can be wrong with them, and the way to them.
extension RemoteError {
    /// What it means to a person that there is no answer.
    init(_ failure: HTTPFailure) {
        switch failure {
        case .libraryMissing, .authority, .unsendable: self.init(.unsupported, failure.description)
        default: self.init(.unavailable, failure.description)
        }
    }

    static let proxyWish = "The proxy wants a password; it is a part of the address in https_proxy."
}
