// SPDX-License-Identifier: Apache-2.0

public import PropertyList
public import SDBus
internal import StoreBus

/// A program's view of an object of the service, through one of its interfaces.
@BusActor
public protocol ObjectClient: AnyObject {
    /// The interface's name.
    static var interface: String { get }
    /// The program's connection.
    var client: BusClient { get }
    /// The object's path.
    var path: String { get }
}

extension ObjectClient {
    /// Calls a method.
    /// - Throws: `BusError`: the service's, or one if there is no answer.
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

    /// Returns the value of a property.
    public func property(_ name: String) async throws -> Value {
        try await client.property(path, Self.interface, name)
    }

    /// Calls `receive` with every signal, from any sender, as long as the slot is held.
    func onSignal(_ receive: @escaping @BusActor (Message) -> Void) async throws -> Slot {
        try await client.connection.addMatch("type='signal',interface='\(Self.interface)',path='\(path)'", receive)
    }
}

/// A program's view of an object with keys: a store, or a layer of a domain.
@BusActor
public protocol KeyedClient: ObjectClient {}

extension KeyedClient {
    /// `GetValue`.
    public func value(_ key: String) async throws -> Value {
        try await call("GetValue") {
            try $0.append(key)
        } decode: {
            try $0.readValue()
        }
    }

    /// `GetSnapshot`.
    public func snapshot(since generation: UInt64 = 0, flags: UInt64 = 0) async throws -> StoreSnapshot {
        try await call("GetSnapshot") {
            try $0.append(generation)
            try $0.append(flags)
        } decode: {
            StoreSnapshot(
                generation: try $0.readUInt64(),
                isComplete: try $0.readBool(),
                values: try $0.readTexts(),
                removed: try $0.readStrings()
            )
        }
    }

    /// `GetHistory`: a dictionary for each earlier value, newest first.
    public func history(_ key: String) async throws -> [[String: Value]] {
        try await call("GetHistory") {
            try $0.append(key)
            try $0.append(0 as UInt64)
        } decode: {
            try $0.readDictionaries()
        }
    }
}
