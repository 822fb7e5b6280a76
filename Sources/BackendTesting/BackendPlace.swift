// SPDX-License-Identifier: Apache-2.0

public import Replication

/// A place that is empty, and how a device comes to a backend for it.
public struct BackendPlace: Sendable {
    /// Makes a backend on the place: for another device, or for one that was started anew.
    public let makeBackend: @Sendable () throws -> any RemoteBackend
    /// Empties the place, as somebody does who deletes a folder's files; `nil` if that can't happen.
    public let empty: (@Sendable () async throws -> Void)?

    /// An empty place.
    public init(
        makeBackend: @escaping @Sendable () throws -> any RemoteBackend,
        empty: (@Sendable () async throws -> Void)? = nil
    ) {
        self.makeBackend = makeBackend
        self.empty = empty
    }
}
