// SPDX-License-Identifier: Apache-2.0

/// What is asked of a server.
public struct HTTPRequest: Sendable {
    /// `GET`, `PROPFIND`…
    public var method: String
    /// Of what.
    public var address: HTTPAddress
    /// Besides those that every request has.
    public var headers: [(name: String, value: String)]
    /// What is sent along; its length is always said.
    public var body: [UInt8]?
    /// The most bytes that the answer may have.
    public var limit: Int
    /// Takes an answer of one status as it comes, instead of having it collected.
    public var sink: Sink?
    /// For how long an answer is waited for.
    public var patience = Patience.usual

    /// For how long an answer is waited for.
    public enum Patience: Sendable {
        /// As long as the client's options say.
        case usual
        /// As long as something comes or goes, and that long, or a quarter longer, while nothing does.
        case silence(Duration)
        /// As long as the connection lasts, which may be silent: for answers that go on.
        case endless
    }

    /// Takes an answer as it comes.
    public struct Sink: Sendable {
        let status: Int
        let isBusy: @Sendable () -> Bool
        let take: @Sendable (UnsafeRawBufferPointer) -> Bool

        /// - Parameters:
        ///   - status: the one whose answer is taken.
        ///   - isBusy: has the answer wait for some milliseconds, while what was taken is worked on elsewhere.
        ///   - take: takes a piece; says whether it wants more. What it has no use for ends the request.
        public init(
            status: Int, isBusy: @escaping @Sendable () -> Bool = { false },
            _ take: @escaping @Sendable (UnsafeRawBufferPointer) -> Bool
        ) {
            (self.status, self.isBusy, self.take) = (status, isBusy, take)
        }
    }

    /// A request of its parts.
    public init(
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

/// What a server answered.
public struct HTTPResponse: Sendable {
    /// The status.
    public internal(set) var status = 0
    /// The headers by their names in lower case; the last one of each name, except that challenges are put together.
    public internal(set) var headers: [String: String] = [:]
    /// What came with it, unless a ``HTTPRequest/Sink`` took it.
    public internal(set) var body: [UInt8] = []
    /// When the server thinks that it is, in seconds since 1970.
    public internal(set) var date: Int?
    /// In how many seconds the server wants to be asked again, at least 0.
    public internal(set) var retryAfter: Int?

    /// The media type, in lower case and without parameters.
    public var mediaType: String {
        (headers["content-type"] ?? "").prefix { $0 != ";" }.lowercased().filter { $0 != " " && $0 != "\t" }
    }
}

/// What somebody proves with that a place is theirs.
public enum HTTPCredentials: Equatable, Sendable {
    /// For servers that ask for nothing.
    case none
    /// A name and a password, as Basic or Digest.
    case password(user: String, password: String)
    /// A bearer token.
    case token(String)
}

extension HTTPCredentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Never what is secret.
    public var description: String {
        switch self {
        case .none: "none"
        case .password: "a name and a password"
        case .token: "a token"
        }
    }

    /// Never what is secret.
    public var debugDescription: String { description }

    /// Never what is secret.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension String {
    /// There are no control characters in it.
    package var isPrintable: Bool { utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F } }
}

/// How a client works.
public struct HTTPOptions: Sendable {
    /// What is proved to the server.
    public var credentials: HTTPCredentials
    /// Certificates in PEM, which are trusted instead of the system's.
    public var authority: [UInt8]?
    /// Where the system's certificates are.
    var systemAuthorities = Authorities.system
    /// The time for a connection.
    public var connectTime: Duration = .seconds(15)
    /// After so long with next to nothing coming or going, a request has failed.
    public var stallTime: Duration = .seconds(30)
    /// The time for all of a request.
    public var wholeTime: Duration = .seconds(300)
    /// A connection on which nothing was asked for so long is closed.
    public var keepTime: Duration = .seconds(10)

    /// The usual ones.
    public init(credentials: HTTPCredentials = .none, authority: [UInt8]? = nil) {
        (self.credentials, self.authority) = (credentials, authority)
    }
}
