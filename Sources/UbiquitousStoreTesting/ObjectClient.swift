// SPDX-License-Identifier: Apache-2.0

public import PropertyList
public import SDBus

/// A program's view of an object of the service, through one of its interfaces.
@BusActor
public protocol ObjectClient: AnyObject {
    /// The interface's name.
    static var interface: String { get }
    /// The program's connection.
    var client: BusClient { get }
    /// Where it is.
    var path: String { get }
}

extension ObjectClient {
    /// Calls a method.
    public func call<Result: Sendable>(
        _ member: String,
        _ build: @BusActor (Message) throws -> Void = { _ in },
        decode: @escaping @BusActor (Message) throws -> Result
    ) async throws -> Result {
        try await client.call(path, Self.interface, member, build, decode: decode)
    }

    /// Calls a method, waits for the reply, and ignores its contents.
    public func call(_ member: String, _ build: @BusActor (Message) throws -> Void = { _ in }) async throws {
        try await call(member, build) { _ in }
    }

    /// A property.
    public func property(_ name: String) async throws -> Value {
        try await client.property(path, Self.interface, name)
    }

    /// Calls `receive` with every signal, from any sender, as long as the slot is held.
    func onSignal(_ receive: @escaping @BusActor (Message) -> Void) async throws -> Slot {
        try await client.connection.addMatch("type='signal',interface='\(Self.interface)',path='\(path)'", receive)
    }
}
