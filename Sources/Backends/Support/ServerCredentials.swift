// SPDX-License-Identifier: Apache-2.0

internal import EventLoop
internal import Replication

/// The credentials for a server, as the user entered them.
package struct ServerCredentials: Sendable {
    /// The user's name.
    package var user: String?
    /// The password.
    package var password: String?
    /// The bearer token.
    package var token: String?
    /// Certificates in PEM, to be trusted instead of the system's.
    package var authority: [UInt8]?
    /// The user whose account it is, and whose requests are counted.
    package var owner: UInt32
    /// Called with the microseconds of the event loop's time that were taken, once they are many.
    package var whenBusy: (@BusActor @Sendable (UInt64) -> Void)?

    /// Makes credentials from their parts.
    package init(
        user: String? = nil, password: String? = nil, token: String? = nil, authority: [UInt8]? = nil,
        owner: UInt32 = 0
    ) {
        (self.user, self.password, self.token, self.authority) = (user, password, token, authority)
        self.owner = owner
    }

    /// How the client authenticates.
    package enum Proof: Equatable {
        case nothing
        case password(user: String, password: String)
        case token(String)
    }

    package var proof: Proof {
        get throws(RemoteError) {
            switch (user, password, token) {
            case (nil, nil, nil): return .nothing
            case (_, nil, let token?): return .token(token)
            case (let user?, let password?, nil): return .password(user: user, password: password)
            default: throw RemoteError(.unsupported, "Give either a user and a password, or a token.")
            }
        }
    }
}
