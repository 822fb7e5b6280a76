// SPDX-License-Identifier: Apache-2.0

package import BackendSupport
internal import Blobs
internal import HTTPClient
internal import RemoteAddress
package import Replication

/// The backend for `webdavs://HOST/PATH` and `webdav://HOST/PATH`: a folder of a WebDAV server.
package enum WebDAVBackend {
    /// The descriptor of WebDAV servers.
    package static let descriptor = BackendDescriptor(.webDAV) {
        site throws(RemoteError) in
        BlobBackend(
            storage: WebDAVStorage(try WebDAVURL(site.url), try site.credentials.options), environment: .system,
            protection: site.protection)
    } check: {
        await WebDAVBackend.check(url: $0.url, credentials: $0.credentials)
    }

    /// Makes a backend for an address. It sends nothing before it is opened.
    /// - Throws: `RemoteError.unsupported` if the address is not one of a WebDAV folder, or the credentials are
    ///   invalid.
    package static func make(
        url: String, credentials: ServerCredentials, environment: Environment = .system
    ) throws(RemoteError) -> some RemoteBackend {
        BlobBackend(
            storage: WebDAVStorage(try WebDAVURL(url), try credentials.options), environment: environment)
    }

    /// Tests an address, and leaves nothing behind.
    package static func check(
        url: String, credentials: ServerCredentials, environment: Environment = .system,
        within time: Duration = BackendDescriptor.checkTime
    ) async -> [BackendCheck] {
        await BackendCheck.steps { () throws(RemoteError) in
            var options = try credentials.options
            options.deadline = .now + time
            return WebDAVStorage(try WebDAVURL(url), options)
        } warning: {
            $0.folder.url.warning
        } _: { storage in
            defer { storage.close() }
            return await WebDAVProbe(storage, environment).run()
        }
    }
}

extension ServerCredentials {
    var options: HTTPOptions {
        get throws(RemoteError) {
            let credentials: HTTPCredentials =
                switch try proof {
                case .nothing: .none
                case .token(let token): .token(token)
                case .password(let user, _) where user.contains(":"):
                    throw RemoteError(.unsupported, "A user's name on a server can't have a colon in it.")
                case .password(let user, let password): .password(user: user, password: password)
                }
            return HTTPOptions(credentials, for: self)
        }
    }
}
