// SPDX-License-Identifier: Apache-2.0

internal import AppManifest
internal import Foundation
internal import SDBus
internal import Synchronization

/// Where a store is: on which bus, and under which identifier.
struct StorePlace: Hashable, Sendable {
    /// The bus, as ``UbiquitousStore`` names it.
    let busName: String
    /// Empty: the service is to find out which one is this program's.
    let identifier: String

    /// The place that the app, or else the environment, or else the app's manifest names.
    ///
    /// - Parameters:
    ///   - identifier: what the app says.
    ///   - bus: `system`, `session` or an address; what the app says.
    init(
        identifier: String? = nil, bus: String? = nil,
        environment: [String: String] = ProcessInfo.processInfo.environment,
        manifestDirectories: [String]? = nil
    ) {
        busName = bus ?? environment.named("UBIQUITOUS_STORE_BUS") ?? "system"
        self.identifier =
            identifier ?? environment.named("UBIQUITOUS_STORE_IDENTIFIER")
            ?? Self.declaredIdentifier(manifestDirectories ?? InstalledManifests.directories(in: environment)) ?? ""
    }

    /// What the manifest of this program declares.
    private static func declaredIdentifier(_ directories: [String]) -> String? {
        guard let program = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe") else {
            return nil
        }
        return InstalledManifests.manifest(ofProgram: program, in: directories)?.identifier
    }

    /// The bus, for a connection.
    var bus: BusAddress {
        switch busName {
        case "system": .system
        case "session": .session
        default: .address(busName)
        }
    }

    /// The store that is there; the same one for everybody in this process, as long as somebody has it.
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

extension InstalledManifests {
    /// The directories of the system and of the person whose environment it is.
    fileprivate static func directories(in environment: [String: String]) -> [String] {
        let dataHome = environment.named("XDG_DATA_HOME") ?? environment.named("HOME").map { $0 + "/.local/share" }
        return dataHome.map { directories(dataHome: $0) } ?? systemDirectories
    }
}

extension [String: String] {
    /// A variable that says something.
    fileprivate func named(_ name: String) -> String? {
        self[name].flatMap { $0.isEmpty ? nil : $0 }
    }
}
