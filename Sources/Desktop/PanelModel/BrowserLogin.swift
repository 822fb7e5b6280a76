// SPDX-License-Identifier: Apache-2.0

// Nextcloud's login flow, version 2: the server returns a page for the browser and an endpoint to poll, which answers
// 404 until the user agrees on that page, and then an app password, once. https://docs.nextcloud.com, client APIs.
//
// The server's answers decide where the browser goes and where the password comes from. So all addresses must be
// encrypted, or on this machine, and must name the host that the user typed; the user is asked about any other.

internal import HTTPClient
internal import PropertyList
internal import PropertyListFiles
internal import RemoteAddress

/// The login that a server offers.
package struct BrowserLogin: Equatable, Sendable {
    /// The page for the browser.
    package let page: String
    /// Hosts besides the typed one that take part in the login. The user decides about them.
    package let otherHosts: [String]
    let endpoint: HTTPAddress
    let token: String

    /// Reads the answer to the first request.
    ///
    /// - Throws: ``Flaw``.
    init(_ answer: [UInt8], from server: HTTPAddress) throws(Flaw) {
        guard let answer = Self.dictionary(answer), case .dictionary(let poll) = answer["poll"],
            let token = poll.text("token"), let endpoint = poll.text("endpoint"), let page = answer.text("login"),
            let endpoint = HTTPAddress(endpoint), let pageAddress = HTTPAddress(page)
        else { throw Flaw.noNextcloud }
        for address in [endpoint, pageAddress] where !address.isSecure && !address.isLoopback {
            throw Flaw.notEncrypted(address.host)
        }
        (self.page, self.endpoint, self.token) = (page, endpoint, token)
        otherHosts = Set([endpoint.host, pageAddress.host]).subtracting([server.host]).sorted()
    }

    /// The credentials that the server returns in the end.
    package struct Credentials: Equatable, Sendable {
        /// The server's address, as the server gives it.
        package let server: String
        package let user: String
        package let password: String

        /// Reads the endpoint's answer, which must not name a host to which the user has not agreed.
        init(_ answer: [UInt8], hosts: Set<String>) throws(Flaw) {
            guard let answer = BrowserLogin.dictionary(answer), let server = answer.text("server"),
                let user = answer.text("loginName"), let password = answer.text("appPassword"),
                let address = HTTPAddress(server)
            else { throw Flaw.noNextcloud }
            guard address.isSecure || address.isLoopback else { throw Flaw.notEncrypted(address.host) }
            guard hosts.contains(address.host) else { throw Flaw.otherServer(address.host) }
            (self.server, self.user, self.password) = (server, user, password)
        }
    }

    /// Why a login in the browser has failed.
    package enum Flaw: Error, Equatable, Sendable {
        case noNextcloud
        case notEncrypted(String)
        case otherServer(String)
        case unreachable(String)
        case expired
    }

    private static func dictionary(_ bytes: [UInt8]) -> [Text: Value]? {
        guard case .dictionary(let dictionary) = try? JSONReader.read(bytes) else { return nil }
        return dictionary
    }
}

extension [Text: Value] {
    fileprivate func text(_ name: Text) -> String? {
        if case .string(let text) = self[name], !text.string.isEmpty { text.string } else { nil }
    }
}

/// Asks a server for a login in the browser.
package struct BrowserLoginClient: Sendable {
    private let server: HTTPAddress
    private let client: HTTPClient

    /// - Throws: ``FieldError`` if the form's server isn't valid.
    package init(_ form: SignInForm) throws(FieldError) {
        let typed = form.text(.server)
        if typed.isEmpty { throw FieldError(field: .server, sentence: BrowserLogin.serverIsMissing) }
        server = try form.server(typed)
        var options = HTTPOptions(authority: form.certificate)
        options.wholeTime = .seconds(30)
        client = HTTPClient(options)
    }

    /// Asks the server for a login page.
    package func begin() async throws(BrowserLogin.Flaw) -> BrowserLogin {
        guard server.isSecure || server.isLoopback else { throw .notEncrypted(server.host) }
        var address = server
        address.path = server.nextcloudRoot + "/index.php/login/v2"
        let answer = try await send(HTTPRequest("POST", address, body: []))
        guard answer.status == 200 else { throw .noNextcloud }
        return try BrowserLogin(answer.body, from: server)
    }

    /// Polls every two seconds until the user has agreed; for at most 20 minutes, which is the server's limit.
    ///
    /// - Returns: `nil` if the task was canceled.
    package func credentials(of login: BrowserLogin) async throws(BrowserLogin.Flaw) -> BrowserLogin.Credentials? {
        let hosts = Set(login.otherHosts + [server.host])
        for _ in 0..<600 {
            if Task.isCancelled { return nil }
            let request = HTTPRequest(
                "POST", login.endpoint, headers: [("Content-Type", "application/x-www-form-urlencoded")],
                body: Array("token=\(PercentCoding.encode(login.token))".utf8))
            let answer = try await send(request)
            if answer.status == 200 { return try BrowserLogin.Credentials(answer.body, hosts: hosts) }
            guard answer.status == 404 else { throw .expired }
            await client.pause(for: .seconds(2))
        }
        throw .expired
    }

    /// Cancels the request that is under way.
    package func close() { client.close() }

    /// Sends a request; if the task is canceled, the request fails.
    private func send(_ request: HTTPRequest) async throws(BrowserLogin.Flaw) -> HTTPResponse {
        let result = await withTaskCancellationHandler {
            await client.result(of: request)
        } onCancel: {
            close()
        }
        do throws(HTTPFailure) { return try result.get() } catch { throw .unreachable("\(error)") }
    }
}
