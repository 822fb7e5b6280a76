// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import Replication
import Sealing
import ServerTesting

@testable import Etcd

extension EtcdCluster {
    /// Makes a backend of the account in the cluster, for one device.
    func backend() throws -> EtcdBackend { try EtcdBackend.make(url: url(), credentials: credentials) }

    /// Makes a backend of an account about whose encryption this is known.
    func backend(_ protection: Protection) throws -> any RemoteBackend {
        EtcdBackend.make(try EtcdClient(try EtcdURL(url()), credentials), .system, protection: protection)
    }

    /// The account's remote, as the conformance suite needs it.
    var remote: EmptyRemote { remote(.none) }

    func remote(_ protection: Protection) -> EmptyRemote { EmptyRemote { try self.backend(protection) } }
}
