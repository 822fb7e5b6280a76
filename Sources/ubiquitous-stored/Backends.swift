// SPDX-License-Identifier: Apache-2.0

internal import Replication
internal import StoreDaemon
internal import SyncBackends

/// The backends that an account may be with, by the scheme of its address.
enum Backends {
    static let schemes = [FolderBackend.scheme] + WebDAVBackend.schemes + EtcdBackend.schemes

    static let make: @Sendable (BackendRequest) throws(RemoteError) -> any RemoteBackend = {
        request throws(RemoteError) in
        switch try Kind(request) {
        case .folder: try FolderBackend.make(url: request.url, access: access(request))
        case .webDAV: try WebDAVBackend.make(url: request.url, credentials: credentials(request))
        case .etcd: try EtcdBackend.make(url: request.url, credentials: credentials(request))
        }
    }

    static let check: @Sendable (BackendRequest) async throws(RemoteError) -> [BackendCheck] = {
        request async throws(RemoteError) in
        switch try Kind(request) {
        case .folder: await FolderBackend.check(url: request.url, access: access(request))
        case .webDAV: await WebDAVBackend.check(url: request.url, credentials: credentials(request))
        case .etcd: await EtcdBackend.check(url: request.url, credentials: credentials(request))
        }
    }

    private enum Kind {
        case folder, webDAV, etcd

        init(_ request: BackendRequest) throws(RemoteError) {
            let scheme = request.scheme
            if scheme == FolderBackend.scheme {
                self = .folder
            } else if WebDAVBackend.schemes.contains(scheme) {
                self = .webDAV
            } else if EtcdBackend.schemes.contains(scheme) {
                self = .etcd
            } else {
                throw RemoteError(
                    .unsupported,
                    (scheme.isEmpty ? "the address is of no known form; " : "there is no backend for \"\(scheme):\"; ")
                        + "use folder:///PATH, webdavs://HOST/PATH or etcds://HOST/PREFIX")
            }
        }
    }

    private static func credentials(_ request: BackendRequest) -> ServerCredentials {
        let given = request.credentials
        return ServerCredentials(
            user: given.user, password: given.password, token: given.token, authority: given.certificateAuthority)
    }

    private static func access(_ request: BackendRequest) -> FolderAccess {
        switch request.mode {
        case .user: .own(uid: request.uid)
        case .system: .roots(request.folderRoots, uid: request.uid)
        }
    }
}
