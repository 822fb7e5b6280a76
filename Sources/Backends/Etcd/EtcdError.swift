// SPDX-License-Identifier: Apache-2.0

internal import BackendSupport
internal import HTTPClient
internal import PlainText
internal import PropertyList
internal import PropertyListFiles
internal import Replication

/// Why a member refused a request.
package struct EtcdRefusal: Error {
    let status: Int
    /// The gRPC status code; `nil` if the response is not etcd's.
    let code: Int?
    let reason: String
    let host: String
    /// For how many seconds a server before the member asks not to be called.
    let retryAfter: Int?

    package init(status: Int, code: Int?, reason: String, host: String, retryAfter: Int? = nil) {
        (self.status, self.code, self.host, self.retryAfter) = (status, code, host, retryAfter)
        self.reason = reason.cleaned(atMost: Self.longestReason).clause
    }

    /// The most bytes that are kept. etcd's own reasons are shorter, but another server may have answered.
    private static let longestReason = 300

    /// Makes a refusal from a response that is not a success.
    init(_ response: HTTPResponse, from host: String) {
        let answer = response.body.count <= 1 << 16 ? try? JSONReader.read(response.body) : nil
        self.init(
            status: response.status,
            code: answer?["code"]?.int64.flatMap { Self.codes.contains($0) ? Int($0) : nil },
            reason: answer?["error"]?.text ?? answer?["message"]?.text
                ?? String(decoding: response.body.prefix(200), as: UTF8.self),
            host: host, retryAfter: response.retryAfter)
    }

    /// The codes of gRPC's errors. Other servers' JSON may have a code too, mostly HTTP's.
    private static let codes: ClosedRange<Int64> = 1...16

    /// The reason, for users. What answers in a member's place is not quoted: the caller may have no other way to it
    /// (docs/decisions/0169).
    var words: String { isForeign ? "it doesn't answer as etcd does (status \(status))" : reason }

    /// Whether the member doesn't know the token, because it has expired or the member was restarted.
    var isStaleToken: Bool {
        code == 16 || reason.contains("invalid auth token") || reason.contains("auth store is old")
    }
    /// Whether another member, or the same one a moment later, may be able to answer.
    var canTryNextMember: Bool {
        code == 14 || (500...599).contains(status) && code != 15 && code != 12 || reason.contains("too many requests")
            || reason.contains("leader")
    }
    /// Whether the response would be larger than the member can pass on at once.
    var isTooLarge: Bool { code == 8 && reason.contains("larger than max") }
    /// Whether the user or the password is wrong.
    var isWrongPassword: Bool { code == 3 && reason.contains("invalid user ID or password") }
    /// Whether the cluster has no authentication.
    var hasNoUsers: Bool { reason.contains("authentication is not enabled") }
    /// Whether the member requires a user, and the request named none.
    var requiresUser: Bool { code == 3 && reason.contains("user name is empty") }
    /// Whether something other than etcd has answered. It may be in front of one member and not of the others.
    var isForeign: Bool { code == nil }
}

extension RemoteError {
    /// Decodes a response, and throws ``EtcdBackend/corrupt`` if that fails.
    static func reading<Content>(
        _ body: () throws(EtcdFlaw) -> Content
    ) throws(RemoteError) -> Content {
        do throws(EtcdFlaw) { return try body() } catch { throw EtcdBackend.corrupt }
    }

    /// Makes the error that tells users why there is no response.
    init(etcd failure: HTTPFailure, from member: HTTPAddress) {
        let error = RemoteError(failure)
        let advice: String
        switch failure {
        case .cut where !member.isSecure, .corrupt where !member.isSecure:
            advice = " If it has TLS, the address must begin with etcds://."
        case .secureConnection where member.isSecure: advice = " If it has no TLS, the address must begin with etcd://."
        default: advice = ""
        }
        self.init(error.code, error.message + advice, reason: error.reason)
    }

    /// Makes the error that tells users why a member refused a request.
    init(_ refusal: EtcdRefusal, at place: String, hasCredentials: Bool) {
        let (code, sentence) = Self.meaning(of: refusal, place, hasCredentials)
        self.init(code, sentence, retryAfter: refusal.retryAfter)
    }

    private static func meaning(
        of refusal: EtcdRefusal, _ place: String, _ hasCredentials: Bool
    ) -> (Code, String) {
        let (host, reason) = (refusal.host, refusal.reason)
        switch refusal.code {
        case 16: return (.unauthorized, "\(host) no longer accepts the token.")
        case 7: return (.denied, "This user may not read and write keys under \(place)/ on \(host).")
        case 8 where reason.contains("space exceeded"):
            return (.full, "The cluster of \(host) is out of space and rejects writes.")
        case 8 where refusal.isTooLarge: return (.full, "This request is too large for \(host).")
        case 15: return (.denied, "The cluster of \(host) rejects all requests: it has raised the alarm CORRUPT.")
        case _ where refusal.requiresUser:
            return (.unauthorized, "\(host) requires a user and a password.")
        case _ where refusal.isWrongPassword:
            return (.unauthorized, "\(host) doesn't accept this user and password.")
        case 3 where reason.contains("too large"):
            return (.full, "This request is too large for \(host).")
        case 9 where reason.contains("CommonName"):
            return (.unsupported, "\(host) requires client certificates, which this service doesn't support.")
        case nil where refusal.status == 400 && reason.contains("HTTPS"):
            return (.unsupported, "\(host) has TLS: the address must begin with etcds://.")
        case nil where [404, 405, 501].contains(refusal.status) || refusal.status < 300:
            return (.unsupported, "\(host) is not an etcd server, or is older than version 3.4.")
        case nil where refusal.status == 407:
            return (.unavailable, proxyWish)
        case _ where refusal.canTryNextMember:
            return (.unavailable, "The cluster of \(host) is unavailable: \(refusal.words).")
        default: return (.unavailable, "\(host) answers \(refusal.status): \(refusal.words).")
        }
    }
}
