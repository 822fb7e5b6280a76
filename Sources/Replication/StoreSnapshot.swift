// SPDX-License-Identifier: Apache-2.0

/// A store's state at one moment, encoded only when it is read.
public struct StoreSnapshot: Sendable {
    /// The store's identifier.
    public let identifier: String
    /// The number of the last change in it. Once the snapshot is uploaded, all changes up to this one are published.
    public let sequence: UInt64
    private let encode: @Sendable () -> StoreState

    /// Makes a snapshot that calls `encode` for its state.
    package init(identifier: String, sequence: UInt64, state encode: @escaping @Sendable () -> StoreState) {
        self.identifier = identifier
        self.sequence = sequence
        self.encode = encode
    }

    /// Makes a snapshot of a given state, for tests of backends.
    public init(identifier: String, state: StoreState, sequence: UInt64) {
        self.init(identifier: identifier, sequence: sequence) { state }
    }

    /// The state, as devices exchange it. Reading it encodes every value.
    public var state: StoreState { encode() }
}

/// A store of the current account, without its values.
public struct AccountStore: Equatable, Sendable {
    /// The store's identifier.
    public let identifier: String
    /// The number of its last change.
    public let sequence: UInt64
    /// The number of the last change that the remote has acknowledged, with all before it.
    public let published: UInt64

    /// Makes a store from its parts.
    public init(identifier: String, sequence: UInt64, published: UInt64) {
        self.identifier = identifier
        self.sequence = sequence
        self.published = published
    }
}
