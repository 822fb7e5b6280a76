// SPDX-License-Identifier: Apache-2.0

internal import EventLoop

/// Asks one server on somebody's behalf, over libcurl on the event loop: without a thread, and without a wake-up once
/// its connections are closed, which they are soon after the last answer.
///
/// Credentials go to the addresses that requests name, and to redirections on the same scheme, host and port. Proxies
/// are those of the environment (`https_proxy` and so on), except that this machine is never reached through one.
public final class HTTPClient: Sendable {
    private let session: HTTPSession

    /// A client that has done nothing yet: not even libcurl is loaded.
    public init(_ options: HTTPOptions) {
        session = HTTPSession(options)
    }

    deinit { close() }

    /// Asks, and follows where the same server sends to.
    /// - Returns: what the server answered, whatever its status.
    /// - Throws: why there is no answer.
    public func send(_ request: HTTPRequest) async throws(HTTPFailure) -> HTTPResponse {
        try await session.send(request)
    }

    /// The same, as a value.
    public func result(of request: HTTPRequest) async -> Result<HTTPResponse, HTTPFailure> {
        do throws(HTTPFailure) { return .success(try await send(request)) } catch { return .failure(error) }
    }

    /// Waits, on the event loop; no longer than until the client is closed.
    public func pause(for time: Duration) async {
        await session.pause(for: time)
    }

    /// Ends what is under way, which fails, and whatever would follow.
    public func close() {
        EventLoop.task { [session] in session.close() }
    }
}
