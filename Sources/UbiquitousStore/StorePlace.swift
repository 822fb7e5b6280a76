// SPDX-License-Identifier: Apache-2.0

internal import AppManifest
internal import Foundation
internal import SDBus
internal import Synchronization

/// A store's bus and identifier.
struct StorePlace: Hashable, Sendable {
    /// The bus, as ``UbiquitousStore`` names it.
    let busName: String
    /// Empty if the service is to determine this program's store.
    let identifier: String

    /// Uses the app's choice, or else the environment's, or else that of the app's manifest.
    ///
    /// - Parameters:
    ///   - identifier: the app's choice.
    ///   - bus: the app's choice: `system`, `session` or an address.
    init(
        identifier: String? = nil, bus: String? = nil,
        environment: [String: String] = ProcessInfo.processInfo.trustedEnvironment,
        manifestDirectories: [String]? = nil
    ) {
        busName = bus ?? environment.named("UBIQUITOUS_STORE_BUS") ?? "system"
        self.identifier =
            identifier ?? environment.named("UBIQUITOUS_STORE_IDENTIFIER")
            ?? Self.declaredIdentifier(manifestDirectories ?? InstalledManifests.directories { environment[$0] }) ?? ""
    }

    /// Returns the identifier that this program's manifest declares.
    private static func declaredIdentifier(_ directories: [String]) -> String? {
        RunningProgram.path.flatMap { InstalledManifests.manifest(ofProgram: $0, in: directories)?.identifier }
    }

    /// The bus, for a connection.
    var bus: BusAddress { BusAddress(busName) }

    /// The store at this place. The whole process shares one as long as it is in use.
    var store: SharedStore {
        Self.stores.withLock { stores in
            if let store = stores[self]?.store { return store }
            let store = SharedStore(self)
            stores[self] = Weak(store: store)
            return store
        }
    }

    private struct Weak {
        weak var store: SharedStore?
    }

    private static let stores = Mutex<[StorePlace: Weak]>([:])
}

extension [String: String] {
    /// Returns a variable's value; `nil` if it is unset or empty.
    fileprivate func named(_ name: String) -> String? {
        self[name].flatMap { $0.isEmpty ? nil : $0 }
    }
}
