// SPDX-License-Identifier: Apache-2.0

/// Stores of an account that belong to no app: their identifiers begin with `@`, which no manifest can declare.
package enum HiddenStores {
    /// Returns whether a store is one of these.
    package static func contains(_ identifier: String) -> Bool { identifier.hasPrefix("@") }

    /// SQL: whether the store of a row is an app's.
    static let isAppStore = "identifier NOT GLOB '@*'"
}
