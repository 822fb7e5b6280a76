// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import SDBus
internal import StoreBus
internal import UbiquitousStore

/// Completes stores, devices and the data of users.
enum StoreCompletion {
    private static let options = ["--bus", "--user"]

    /// Returns the identifiers of stores that may be opened or hold something.
    static func identifiers(_ arguments: [String]) -> [String] {
        CompletionQuestion.ask(arguments, options) { (options: ServiceOptions) in
            let connection = try await options.connect()
            let uid = try options.uid()
            let listed = try await connection.manager.stores(ofEverybody: options.user != nil)
            let entitled = try await connection.manager.identify().entitled
            return Set(listed.filter { $0.uid == uid }.map(\.identifier) + entitled).sorted()
        }
    }

    /// Returns the account's devices, by name if the name is safe in the shell, and otherwise by identifier.
    static func devices(_ arguments: [String]) -> [String] {
        let shell = CompletionShell.requesting
        return CompletionQuestion.ask(arguments, options) { (options: ServiceOptions) in
            try await options.account().devices().map {
                CompletionQuestion.isSafe($0.name, in: shell) ? $0.name : $0.identifier
            }
        }
    }

    /// Returns the names of data as `admin list` shows them, for root.
    /// - Parameter isSetAside: whether to offer only what was set aside, or what nobody can use.
    static func data(_ arguments: [String], isSetAside: Bool) -> [String] {
        CompletionQuestion.ask(arguments, ["--bus"]) { (options: BusOptions) in
            try await AdministrationObject(try await options.connect()).data()
                .filter { $0.isSetAside || !isSetAside || $0.obstacle != nil }.map(\.name)
        }
    }
}
