// SPDX-License-Identifier: Apache-2.0

public import Replication

/// An empty remote, and how devices make a backend for it.
public struct EmptyRemote: Sendable {
    /// Makes a backend for the remote: for another device, or for one that has restarted.
    public let makeBackend: @Sendable () throws -> any RemoteBackend
    /// Empties the remote, as if a user had deleted a folder's files; `nil` if that can't happen.
    public let empty: (@Sendable () async throws -> Void)?

    /// Describes an empty remote.
    public init(
        makeBackend: @escaping @Sendable () throws -> any RemoteBackend,
        empty: (@Sendable () async throws -> Void)? = nil
    ) {
        self.makeBackend = makeBackend
        self.empty = empty
    }
}
