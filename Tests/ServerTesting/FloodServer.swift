// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Synchronization

/// A server that answers the first bytes of a connection with the same ones again and again.
public final class FloodServer: Sendable {
    /// The port on which it listens.
    public let port: UInt16
    private let socket: Socket
    private let count = Atomic(0)

    /// Starts a server, which closes each connection after it has sent `most` bytes.
    public init(_ bytes: [UInt8], atMost most: Int) throws {
        (socket, port) = try Socket.listening(on: 0)
        let block = Array(repeating: bytes, count: max(1, (1 << 16) / bytes.count)).flatMap(\.self)
        onThread { [socket, weak self] in
            while let connection = socket.accept() {
                guard self != nil else { return }
                onThread { [weak self] in
                    _ = connection.read()
                    var sent = 0
                    while sent < most, connection.write(block) {
                        sent += block.count
                        self?.count.add(block.count, ordering: .relaxed)
                    }
                    connection.end()
                }
            }
        }
    }

    deinit { socket.end() }

    /// How many bytes it has sent.
    public var sent: Int { count.load(ordering: .relaxed) }
}
