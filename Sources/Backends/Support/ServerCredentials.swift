// SPDX-License-Identifier: Apache-2.0

internal import Replication

/// The credentials for a server, as the user entered them.
public struct ServerCredentials: Sendable {
    /// The user's name.
    public var user: String?
    /// The password.
    public var password: String?
    /// The bearer token.
    public var token: String?
    /// Certificates in PEM, to be trusted instead of the system's.
    public var authority: [UInt8]?

    /// Makes credentials from their parts.
    public init(user: String? = nil, password: String? = nil, token: String? = nil, authority: [UInt8]? = nil) {
        (self.user, self.password, self.token, self.authority) = (user, password, token, authority)
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
            default: throw RemoteError(.unsupported, "A server wants a user and a password, or a token instead.")
            }
        }
    }
}
