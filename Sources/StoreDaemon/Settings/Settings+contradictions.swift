// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import RemoteAddress
package import Replication
internal import Sealing

extension Settings {
    /// The contradictions in the settings, in sentences.
    package var contradictions: [String] {
        var found: [String] = []
        if pace.shortestPoll > pace.longestPoll {
            found.append("ShortestPoll= is longer than LongestPoll=, so ShortestPoll= applies to both.")
        }
        if bounds.subscriptionsPerConnection > bounds.subscriptions {
            found.append("SubscriptionsPerConnection= is more than Subscriptions=, so it is never reached.")
        }
        if limits.totalBytes > bounds.databaseBytes {
            found.append("TotalBytes= of a store is more than DatabaseBytes= of all of a user's stores.")
        }
        if let backends, !folderRoots.isEmpty, !backends.contains(BackendKind.folder.name) {
            found.append("There is a FolderRoot=, but \"folder\" isn't among Backends=.")
        }
        return found + (defaultAccount.map(contradictions) ?? [])
    }

    /// Returns what prevents the default account from being one, or from being encrypted although the settings require it,
    /// in sentences.
    /// - Parameter make: makes a backend, as in ``Configuration/makeBackend``.
    package func accountContradictions(
        _ make: (BackendRequest) throws(RemoteError) -> any RemoteBackend
    ) -> [String] {
        // That an address has a user name, and perhaps a password, is said elsewhere, and the address to nobody.
        guard let address = defaultAccount?.address(user: "user", uid: 0),
            !RemoteAddress.authority(of: address).contains("@")
        else { return [] }
        var request = BackendRequest(
            url: address, uid: 0, mode: .user, folderRoots: [], credentials: BackendCredentials())
        do throws(RemoteError) { _ = try make(request) } catch {
            if error.code == .unsupported {
                return ["DefaultAccount= leads to \(address) for a user of the name \"user\". \(error)"]
            }
        }
        if !requiresEncryption { return [] }
        request.protection = .locked
        do throws(RemoteError) {
            if try make(request) is any KeyHolding { return [] }
        } catch {
            if error.code != .unsupported { return [] }
        }
        return ["RequireEncryption= is yes, but an account at DefaultAccount= can't be encrypted."]
    }

    private func contradictions(of account: DefaultAccount) -> [String] {
        guard !account.address.isEmpty else { return ["There is a DefaultAuthority=, but no DefaultAccount=."] }
        let scheme = RemoteAddress.scheme(of: account.address)
        if let backends, !backends.contains(scheme) {
            return ["DefaultAccount= is at \(scheme):, which isn't among Backends=."]
        }
        if RemoteAddress.authority(of: account.address).contains("@") {
            return [
                "DefaultAccount= contains a user name, and everybody can read it. Remove it; users enter name and "
                    + "password themselves."
            ]
        }
        let path = account.address.dropFirst("folder://".count)
        // Without any here, the unit's environment may name them, as folder-root.conf does.
        let isInRoot = folderRoots.isEmpty || folderRoots.contains { path == $0 || path.hasPrefix($0 + "/") }
        return scheme == BackendKind.folder.name && !isInRoot ? ["DefaultAccount= is not in any FolderRoot=."] : []
    }
}
