// SPDX-License-Identifier: Apache-2.0

internal import Replication
internal import StoreDaemon
internal import SyncBackends

/// The backends, in the form that the service's configuration takes.
enum Backends {
    static let schemes = BackendDescriptor.all.flatMap(\.schemes)

    static let make: @Sendable (BackendRequest) throws(RemoteError) -> any RemoteBackend = {
        request throws(RemoteError) in try BackendDescriptor.find(request.scheme).make(site(request))
    }

    static let check: @Sendable (BackendRequest) async throws(RemoteError) -> [BackendCheck] = {
        request async throws(RemoteError) in await (try BackendDescriptor.find(request.scheme)).check(site(request))
    }

    private static func site(_ request: BackendRequest) -> BackendSite {
        let given = request.credentials
        let folders: FolderAccess =
            switch request.mode {
            case .user: .own(uid: request.uid, besides: request.stateDirectory)
            case .system: .roots(request.folderRoots, uid: request.uid)
            }
        var credentials = ServerCredentials(
            user: given.user, password: given.password, token: given.token, authority: given.certificateAuthority,
            owner: request.uid)
        credentials.whenBusy = request.whenBusy
        var site = BackendSite(url: request.url, credentials: credentials, folders: folders)
        site.protection = request.protection
        return site
    }
}
