// SPDX-License-Identifier: Apache-2.0

/// A store's shared state at one moment, which is encoded when it is asked for.
public struct StoreSnapshot: Sendable {
    /// The store's identifier.
    public let identifier: String
    /// The last change that it holds: what is marked as published once the snapshot is uploaded.
    public let sequence: UInt64
    private let encode: @Sendable () -> StoreState

    /// A snapshot of which `state` gives the content.
    package init(identifier: String, sequence: UInt64, state encode: @escaping @Sendable () -> StoreState) {
        self.identifier = identifier
        self.sequence = sequence
        self.encode = encode
    }

    /// A snapshot of a state that is in no database, as tests of backends have it.
    public init(identifier: String, state: StoreState, sequence: UInt64) {
        self.init(identifier: identifier, sequence: sequence) { state }
    }

    /// The state as devices exchange it; encodes every value.
    public var state: StoreState { encode() }
}

/// A store of the current account, without its values.
public struct AccountStore: Equatable, Sendable {
    /// The store's identifier.
    public let identifier: String
    /// Its last change.
    public let sequence: UInt64
    /// The remote has acknowledged every change up to this one.
    public let published: UInt64

    /// A store of its parts.
    public init(identifier: String, sequence: UInt64, published: UInt64) {
        self.identifier = identifier
        self.sequence = sequence
        self.published = published
    }
}
