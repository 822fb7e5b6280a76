// SPDX-License-Identifier: Apache-2.0

internal import Replication

/// What a server asks for, as a person has given it.
public struct ServerCredentials: Sendable {
    /// A name.
    public var user: String?
    /// A password.
    public var password: String?
    /// A bearer token.
    public var token: String?
    /// Certificates in PEM, to be trusted instead of the system's.
    public var authority: [UInt8]?

    /// Credentials of their parts.
    public init(user: String? = nil, password: String? = nil, token: String? = nil, authority: [UInt8]? = nil) {
        (self.user, self.password, self.token, self.authority) = (user, password, token, authority)
    }

    /// How one proves who one is.
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
