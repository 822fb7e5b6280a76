// SPDX-License-Identifier: Apache-2.0

internal import StoreDaemon
internal import SyncBackends
internal import SyncEngine

/// The backends that an account may be with, by the scheme of its address.
enum Backends {
    static let make: @Sendable (BackendRequest) throws(RemoteError) -> any RemoteBackend = {
        request throws(RemoteError) in
        guard scheme(request.url) == FolderBackend.scheme else { throw unsupported(request) }
        return try FolderBackend.make(url: request.url, access: access(request))
    }

    static let check: @Sendable (BackendRequest) async throws(RemoteError) -> [BackendCheck] = {
        request async throws(RemoteError) in
        guard scheme(request.url) == FolderBackend.scheme else { throw unsupported(request) }
        return await FolderBackend.check(url: request.url, access: access(request))
    }

    private static func scheme(_ url: String) -> String {
        String(url.prefix { $0 != ":" }).lowercased()
    }

    private static func unsupported(_ request: BackendRequest) -> RemoteError {
        RemoteError(.unsupported, "there is no backend for \"\(scheme(request.url)):\"; use folder:///PATH")
    }

    private static func access(_ request: BackendRequest) -> FolderAccess {
        switch request.mode {
        case .user: .own(uid: request.uid)
        case .system: .roots(request.folderRoots, uid: request.uid)
        }
    }
}
