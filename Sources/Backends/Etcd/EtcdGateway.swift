// SPDX-License-Identifier: Apache-2.0

internal import BackendSupport
package import HTTPClient
package import PropertyList
internal import PropertyListFiles
internal import Replication
internal import Synchronization

/// The connection to the members of a cluster: over the JSON gateway that each of them has, or a simulation's.
package protocol EtcdGateway: Sendable {
    /// Sends a request to a member.
    /// - Parameter time: how long the member may stay silent; a slow response is not silence.
    /// - Returns: the response, and the time by the member's clock, in seconds since 1970.
    func ask(
        _ question: EtcdQuestion, of member: HTTPAddress, within time: Duration
    ) async throws(EtcdFailure) -> (answer: Value, time: Int?)

    /// Sends a request with a streamed response, and returns when that ends.
    /// - Parameter take: takes a message, or `nil` for one that is too large; returns whether to continue.
    /// - Returns: false if the member didn't know the token.
    func listen(
        _ question: EtcdQuestion, to member: HTTPAddress, _ take: @escaping @Sendable (Value?) -> Bool
    ) async -> Bool

    /// Waits, at most until the gateway is closed.
    func pause(for time: Duration) async

    /// Returns another gateway to the same members, which is closed separately.
    func another() -> any EtcdGateway

    /// Ends the requests that are under way; they fail.
    func close()
}

/// A request to a member.
package struct EtcdQuestion: Sendable {
    package let path: String
    package let body: Value
    package let token: String?

    init(_ path: String, _ body: Value, token: String? = nil) {
        (self.path, self.body, self.token) = (path, body, token)
    }
}

/// The JSON gateway that every member has on its client port.
final class EtcdHTTP: EtcdGateway {
    private let options: HTTPOptions
    private let http: HTTPClient
    private let budget: RemoteBudget
    /// Decodes responses, because a caller may be on the thread that answers all calls.
    private let thread = WorkThread(.decoding)
    private let listening = Mutex(Listening())

    /// The streamed response that is under way.
    private struct Listening {
        var isClosed = false
        var http: HTTPClient?
    }

    /// - Parameter budget: the memory for responses, until they are decoded.
    init(_ options: HTTPOptions, budget: RemoteBudget = .shared) {
        (self.options, self.budget, http) = (options, budget, HTTPClient(options))
    }

    func another() -> any EtcdGateway { EtcdHTTP(options, budget: budget) }
    func pause(for time: Duration) async { await http.pause(for: time) }

    func close() {
        http.close()
        let other = listening.withLock { listening in
            listening.isClosed = true
            return listening.http
        }
        other?.close()
    }

    func ask(
        _ question: EtcdQuestion, of member: HTTPAddress, within time: Duration
    ) async throws(EtcdFailure) -> (answer: Value, time: Int?) {
        var request = Self.request(question, member)
        request.patience = .silence(time)
        let share = budget.share()
        defer { withExtendedLifetime(share) {} }
        request.mayKeep = share.take
        let response: HTTPResponse
        do throws(HTTPFailure) { response = try await http.send(request) } catch { throw .http(error, member) }
        let answer = try await thread.result { () throws(EtcdFailure) in
            try Self.decode(response, from: member, in: share)
        }
        return (answer, response.date)
    }

    private static func decode(
        _ response: HTTPResponse, from member: HTTPAddress, in share: RemoteBudget.Share
    ) throws(EtcdFailure) -> Value {
        let (values, containers) = counts(in: response.body)
        guard response.status == 200, values + containers <= mostValues else {
            throw .refusal(EtcdRefusal(response, from: member.host))
        }
        guard share.take(response.body.count + values * valueBytes + containers * containerBytes) else {
            throw .http(.noRoom(member.host), member)
        }
        guard let answer = try? JSONReader.read(response.body), answer["header"] != nil else {
            throw .refusal(EtcdRefusal(response, from: member.host))
        }
        return answer
    }

    func listen(
        _ question: EtcdQuestion, to member: HTTPAddress, _ take: @escaping @Sendable (Value?) -> Bool
    ) async -> Bool {
        // A client of its own, so that it can be closed between two messages.
        let http = HTTPClient(options)
        let isClosed = listening.withLock { listening in
            listening.http = http
            return listening.isClosed
        }
        if isClosed { return true }
        let reader = EtcdLines(take, whenOver: http.close)
        var request = Self.request(question, member)
        request.patience = .endless
        // Without this header, a member that is cut off from the others stays silent for as long as that lasts.
        request.headers.append((name: "Grpc-Metadata-hasleader", value: "true"))
        request.sink = reader.sink
        let result = await http.result(of: request)
        await reader.finish()
        if case .success(let response) = result { return response.status != 401 }
        return true
    }

    private static func request(_ question: EtcdQuestion, _ member: HTTPAddress) -> HTTPRequest {
        var member = member
        member.path = question.path
        var headers = [(name: "Content-Type", value: "application/json")]
        if let token = question.token { headers.append((name: "Authorization", value: token)) }
        return HTTPRequest(
            "POST", member, headers: headers, body: Array(JSONWriter.write(question.body).utf8), limit: mostBytes)
    }

    /// Six times the largest row, since Base64 enlarges rows.
    private static let mostBytes = 8 << 20

    /// More values than any request has in its response.
    private static let mostValues = 1 << 19
    /// The memory that a decoded value takes besides its text. The response may have only two bytes for it.
    private static let valueBytes = 40
    /// The memory that a decoded array or dictionary takes, with the first value in it.
    private static let containerBytes = 200

    /// Returns how many containers a response has, and how many values besides the first in each, at most. Base64 has
    /// none of these characters.
    private static func counts(in body: [UInt8]) -> (values: Int, containers: Int) {
        body.reduce(into: (0, 0)) { counts, byte in
            if byte == UInt8(ascii: ",") { counts.0 += 1 }
            if byte == UInt8(ascii: "[") || byte == UInt8(ascii: "{") { counts.1 += 1 }
        }
    }
}

/// Why there is no response.
package enum EtcdFailure: Error {
    case http(HTTPFailure, HTTPAddress)
    case refusal(EtcdRefusal)

    /// Whether another member may be able to answer.
    var canTryNextMember: Bool {
        switch self {
        case .http(.closed, _), .http(.libraryMissing, _), .http(.unsendable, _), .http(.authority, _),
            .http(.tooLarge, _), .http(.noRoom, _):
            false
        case .http: true
        case .refusal(let refusal): refusal.canTryNextMember || refusal.isForeign
        }
    }

    /// Whether the response would be larger than a member passes on, or than this client accepts.
    var isTooLarge: Bool {
        switch self {
        case .http(let failure, _): if case .tooLarge = failure { true } else { false }
        case .refusal(let refusal): refusal.isTooLarge
        }
    }

    /// Whether the failure came without waiting, so that a longer timeout wouldn't help.
    var isImmediate: Bool {
        switch self {
        case .http(.timedOut, _), .http(.cut, _): false
        case .refusal(let refusal): !refusal.canTryNextMember
        case .http: true
        }
    }

    func remoteError(_ client: EtcdClient) -> RemoteError {
        switch self {
        case .http(let failure, let member): RemoteError(etcd: failure, from: member)
        case .refusal(let refusal):
            RemoteError(refusal, at: client.url.place, hasCredentials: client.proof != .nothing)
        }
    }
}
