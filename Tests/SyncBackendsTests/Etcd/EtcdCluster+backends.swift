// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import Replication
import Sealing
import ServerTesting

@testable import Etcd

extension EtcdCluster {
    /// A backend of the account in the cluster, for a device of its own.
    func backend() throws -> EtcdBackend { try EtcdBackend.make(url: url(), credentials: credentials) }

    /// A backend of the account, of whose encryption so much is known.
    func backend(_ protection: Protection) throws -> any RemoteBackend {
        EtcdBackend.make(try EtcdClient(try EtcdURL(url()), credentials), .system, protection: protection)
    }

    /// The account's place.
    var place: BackendPlace { place(.none) }

    func place(_ protection: Protection) -> BackendPlace { BackendPlace { try self.backend(protection) } }
}
