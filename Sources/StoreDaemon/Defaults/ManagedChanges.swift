// SPDX-License-Identifier: Apache-2.0

internal import ManagedDefaults
internal import PropertyList
internal import Replication
internal import SDBus
internal import StoreEngine

/// What has changed in managed settings, by domain and user.
///
/// To merge the files of a domain takes time in proportion to their keys, and there may be thousands of subscribers. So
/// it is done once for all to whom the same files apply.
@BusActor
final class ManagedChanges {
    private let former: ManagedSettings
    private let present: ManagedSettings
    private var known: [Files: ChangedKeys] = [:]

    /// A domain, and the files that apply to a user.
    private struct Files: Hashable {
        let domain: Text
        let former: [String]
        let present: [String]
    }

    init(from former: ManagedSettings, to present: ManagedSettings) {
        (self.former, self.present) = (former, present)
    }

    /// Returns the keys of a domain's layer that have changed for a caller.
    func keys(of layer: UserStore, for peer: Peer) -> ChangedKeys {
        guard let name = layer.layer?.domain else { return ChangedKeys([]) }
        let (domain, user) = (Text(name), layer.user.domains.managedUser(peer))
        let files = Files(domain: domain, former: former.paths(for: user), present: present.paths(for: user))
        if let keys = known[files] { return keys }
        let difference = present.domain(domain, for: user).difference(from: former.domain(domain, for: user))
        let keys = ChangedKeys(Set(difference.map { Key(unchecked: $0.string) }))
        known[files] = keys
        return keys
    }
}
