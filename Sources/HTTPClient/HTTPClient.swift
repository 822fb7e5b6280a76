// SPDX-License-Identifier: Apache-2.0

internal import EventLoop

/// Sends requests to one server with one set of credentials, through libcurl on the event loop. It needs no thread,
/// closes its connections soon after the last answer, and then causes no wakeups.
///
/// It sends credentials to the addresses of requests, and to redirections to the same scheme, host and port. Proxies
/// are those of the environment (`https_proxy` and so on); it never uses one to reach this machine.
package final class HTTPClient: Sendable {
    private let session: HTTPSession

    /// Makes a client. libcurl is loaded with the first request.
    package init(_ options: HTTPOptions) {
        session = HTTPSession(options)
    }

    deinit { close() }

    /// Sends a request, and follows redirections to the same server.
    /// - Returns: the server's answer, whatever its status.
    /// - Throws: the reason why there is no answer.
    package func send(_ request: HTTPRequest) async throws(HTTPFailure) -> HTTPResponse {
        try await session.send(request)
    }

    /// Sends a request, and returns the answer or the failure.
    package func result(of request: HTTPRequest) async -> Result<HTTPResponse, HTTPFailure> {
        do throws(HTTPFailure) { return .success(try await send(request)) } catch { return .failure(error) }
    }

    /// Waits on the event loop, until the client is closed at the latest.
    package func pause(for time: Duration) async {
        await session.pause(for: time)
    }

    /// Closes the client: requests under way and later ones fail.
    package func close() {
        EventLoop.task { [session] in session.close() }
    }
}
