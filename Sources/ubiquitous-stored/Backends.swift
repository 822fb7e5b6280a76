// SPDX-License-Identifier: Apache-2.0

internal import StoreDaemon
internal import SyncBackends
internal import SyncEngine

/// The backends that an account may be with, by the scheme of its address.
enum Backends {
    static let schemes = [FolderBackend.scheme] + WebDAVBackend.schemes

    static let make: @Sendable (BackendRequest) throws(RemoteError) -> any RemoteBackend = {
        request throws(RemoteError) in
        switch scheme(request.url) {
        case FolderBackend.scheme:
            return try FolderBackend.make(url: request.url, access: access(request))
        case let scheme where WebDAVBackend.schemes.contains(scheme):
            return try WebDAVBackend.make(url: request.url, credentials: credentials(request))
        default: throw unsupported(request)
        }
    }

    static let check: @Sendable (BackendRequest) async throws(RemoteError) -> [BackendCheck] = {
        request async throws(RemoteError) in
        switch scheme(request.url) {
        case FolderBackend.scheme:
            return await FolderBackend.check(url: request.url, access: access(request))
        case let scheme where WebDAVBackend.schemes.contains(scheme):
            return await WebDAVBackend.check(url: request.url, credentials: credentials(request))
        default: throw unsupported(request)
        }
    }

    private static func scheme(_ url: String) -> String {
        String(url.prefix { $0 != ":" }).lowercased()
    }

    private static func unsupported(_ request: BackendRequest) -> RemoteError {
        RemoteError(
            .unsupported,
            "there is no backend for \"\(scheme(request.url)):\"; "
                + "use folder:///PATH or webdavs://HOST/PATH")
    }

    private static func credentials(_ request: BackendRequest) -> WebDAVBackend.Credentials {
        let given = request.credentials
        return WebDAVBackend.Credentials(
            user: given.user, password: given.password, token: given.token, authority: given.certificateAuthority)
    }

    private static func access(_ request: BackendRequest) -> FolderAccess {
        switch request.mode {
        case .user: .own(uid: request.uid)
        case .system: .roots(request.folderRoots, uid: request.uid)
        }
    }
}
