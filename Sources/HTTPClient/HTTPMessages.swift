// SPDX-License-Identifier: Apache-2.0

internal import EventLoop

/// A request to a server.
package struct HTTPRequest: Sendable {
    /// `GET`, `PROPFIND`…
    package var method: String
    /// The URL.
    package var address: HTTPAddress
    /// Headers in addition to those of every request.
    package var headers: [(name: String, value: String)]
    /// The body. Its length is always sent.
    package var body: [UInt8]?
    /// The maximum length of the answer's body, in bytes.
    package var limit: Int
    /// Receives the body of an answer with one status piece by piece, instead of collecting it.
    package var sink: Sink?
    /// Called before this many more bytes of the answer's body are kept. False ends the request with
    /// ``HTTPFailure/noRoom(_:)``.
    package var mayKeep: @Sendable (_ bytes: Int) -> Bool = { _ in true }
    /// How long to wait for an answer.
    package var patience = Patience.usual

    /// How long to wait for an answer.
    package enum Patience: Sendable {
        /// As the client's options say.
        case usual
        /// As long as data moves, but no longer than the client's options say, or than four times this if that is longer.
        /// While no data moves, for this long, or up to a quarter longer.
        case silence(Duration)
        /// As long as the connection lasts, even if it is silent: for answers without an end.
        case endless
    }

    /// Receives a body piece by piece.
    package struct Sink: Sendable {
        let status: Int
        let isBusy: @Sendable () -> Bool
        let take: @Sendable (UnsafeRawBufferPointer) -> Bool

        /// - Parameters:
        ///   - status: the status whose body is received.
        ///   - isBusy: if true, pauses the answer for some milliseconds, while earlier pieces are processed elsewhere.
        ///   - take: receives a piece, and returns whether to continue. False ends the request.
        package init(
            status: Int, isBusy: @escaping @Sendable () -> Bool = { false },
            _ take: @escaping @Sendable (UnsafeRawBufferPointer) -> Bool
        ) {
            (self.status, self.isBusy, self.take) = (status, isBusy, take)
        }
    }

    /// Makes a request from its parts.
    package init(
        _ method: String, _ address: HTTPAddress, headers: [(name: String, value: String)] = [], body: [UInt8]? = nil,
        limit: Int = 64 << 10, sink: Sink? = nil
    ) {
        self.method = method
        self.address = address
        self.headers = headers
        self.body = body
        self.limit = limit
        self.sink = sink
    }
}

/// A server's answer.
package struct HTTPResponse: Sendable {
    /// The status.
    package internal(set) var status = 0
    /// The headers by their lower-case names. Of several with one name, the last counts; challenges are combined.
    package internal(set) var headers: [String: String] = [:]
    /// The body, unless a ``HTTPRequest/Sink`` received it.
    package internal(set) var body: [UInt8] = []
    /// The server's time, in seconds since 1970.
    package internal(set) var date: Int?
    /// `Retry-After` in seconds, at least 0.
    package internal(set) var retryAfter: Int?

    /// The media type, in lower case and without parameters.
    package var mediaType: String {
        (headers["content-type"] ?? "").prefix { $0 != ";" }.lowercased().filter { $0 != " " && $0 != "\t" }
    }
}

/// Credentials for a server.
package enum HTTPCredentials: Equatable, Sendable {
    /// For servers that need none.
    case none
    /// A name and a password, as Basic or Digest.
    case password(user: String, password: String)
    /// A bearer token.
    case token(String)
}

extension HTTPCredentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Hides the secrets.
    package var description: String {
        switch self {
        case .none: "none"
        case .password: "a name and a password"
        case .token: "a token"
        }
    }

    /// Hides the secrets.
    package var debugDescription: String { description }

    /// Hides the secrets.
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension String {
    /// Whether the string has no control characters.
    package var isPrintable: Bool { utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F } }
}

/// A client's options.
package struct HTTPOptions: Sendable {
    /// The credentials for the server.
    package var credentials: HTTPCredentials
    /// Certificates in PEM to trust instead of the system's.
    package var authority: [UInt8]?
    /// The directory of the system's certificates.
    var systemAuthorities = Authorities.system
    /// Begins a lookup of a name; `nil` leaves lookups to libcurl, which leaves behind a thread for each that doesn't end
    /// in time.
    package var lookUp: (@Sendable (HTTPLookup) -> Void)?
    /// The user for whom the requests are made; `nil` if the process works for one user only.
    package var owner: UInt32?
    /// Called with the microseconds of the loop's time that were taken, once they are 20,000 or more.
    package var whenBusy: (@BusActor @Sendable (UInt64) -> Void)?
    /// The time limit for connecting, and for looking up a name before that.
    package var connectTime: Duration = .seconds(15)
    /// A request fails after this long with hardly any data moving.
    package var stallTime: Duration = .seconds(30)
    /// The time limit for a whole request.
    package var wholeTime: Duration = .seconds(300)
    /// The time by which everything has to be over. A request that begins later still gets a second.
    package var deadline: ContinuousClock.Instant?
    /// A connection is closed after this long without a request.
    package var keepTime: Duration = .seconds(10)

    /// Makes options with the default limits.
    package init(credentials: HTTPCredentials = .none, authority: [UInt8]? = nil) {
        (self.credentials, self.authority) = (credentials, authority)
    }
}
