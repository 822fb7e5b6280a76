// SPDX-License-Identifier: Apache-2.0

internal import HTTPClient
public import StoreEngine
public import SyncEngine

/// The backend for `webdavs://HOST/PATH` and `webdav://HOST/PATH`: a folder of a WebDAV server.
public enum WebDAVBackend {
    /// What an address of it may begin with.
    public static let schemes: Set<String> = ["webdavs", "webdav"]

    /// What the server asks for, as a person has given it.
    public struct Credentials: Sendable {
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

        var options: HTTPOptions {
            get throws(RemoteError) { HTTPOptions(credentials: try credentials, authority: authority) }
        }

        private var credentials: HTTPCredentials {
            get throws(RemoteError) {
                switch (user, password, token) {
                case (nil, nil, nil): return .none
                case (_, nil, let token?): return .token(token)
                case (let user?, let password?, nil):
                    guard !user.contains(":") else {
                        throw RemoteError(.unsupported, "A user's name on a server can't have a colon in it.")
                    }
                    return .password(user: user, password: password)
                default:
                    throw RemoteError(.unsupported, "A server wants a user and a password, or a token instead.")
                }
            }
        }
    }

    /// A backend for an address. Nothing is asked before it is opened.
    /// - Throws: `RemoteError.unsupported` for an address that is none of a WebDAV folder, and for credentials that are
    ///   none.
    public static func make(
        url: String, credentials: Credentials, environment: Environment = .system
    ) throws(RemoteError) -> some RemoteBackend {
        BlobBackend(
            storage: WebDAVStorage(try WebDAVURL(url), try credentials.options), environment: environment)
    }

    /// Tries an address out, and leaves nothing behind.
    public static func check(
        url: String, credentials: Credentials, environment: Environment = .system
    ) async -> [BackendCheck] {
        let storage: WebDAVStorage
        do throws(RemoteError) {
            storage = WebDAVStorage(try WebDAVURL(url), try credentials.options)
        } catch {
            return [BackendCheck(step: "address", isPassed: false, detail: error.message)]
        }
        defer { storage.close() }
        let address = BackendCheck(step: "address", isPassed: true, detail: storage.url.warning ?? "")
        return [address] + (await WebDAVTrial(storage, environment).run())
    }
}
