// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import ServerTesting

@testable import Etcd

extension EtcdCluster {
    /// A backend of the account in the cluster, for a device of its own.
    func backend() throws -> EtcdBackend { try EtcdBackend.make(url: url(), credentials: credentials) }

    /// The account's place.
    var place: BackendPlace { BackendPlace { try self.backend() } }
}
