// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import SDBus
internal import StoreBus

/// An option of an `a{sv}` argument, by its D-Bus type.
enum Option: Sendable {
    case boolean(Bool)
    case unsigned(UInt64)
    case string(String)
    case bytes([UInt8])
}

/// The longest texts that are read, in bytes. A longer one breaks a rule anyway, and Swift's operations on characters
/// take a time that grows with the square of a text of combining ones.
enum TextBound {
    /// Identifiers and names. Up to this length, a more specific error than "too long" is returned.
    static let name = 1024
    /// Addresses of remotes.
    static let address = 4096
    /// Passwords, tokens and other options.
    static let option = 8192
}

extension Message {
    /// Reads flags. Only those in `allowed` may be set.
    func readFlags(_ allowed: UInt64 = 0) throws(BusError) -> UInt64 {
        let flags = try readUInt64()
        guard flags & ~allowed == 0 else {
            throw .invalidArguments("The flags 0x\(String(flags & ~allowed, radix: 16)) are unknown.")
        }
        return flags
    }

    /// Reads options. Each must be known and have its type.
    /// - Parameter known: the options' names with their D-Bus types: `b`, `t`, `s` or `ay`.
    func readOptions(_ known: [String: String] = [:]) throws -> [String: Option] {
        var options: [String: Option] = [:]
        try readDictionary(nameLimit: TextBound.name) { name in
            guard let type = known[name] else { throw BusError.invalidArguments("The option \"\(name)\" is unknown.") }
            guard options[name] == nil else {
                throw BusError.invalidArguments("The option \"\(name)\" comes twice.")
            }
            options[name] = try readOption(name, type)
        }
        return options
    }

    private func readOption(_ name: String, _ type: String) throws(BusError) -> Option {
        guard try peekType() == "v", try peekContents() == type else {
            throw .invalidArguments("The option \"\(name)\" has to be of the type \(type).")
        }
        try enterVariant()
        let option: Option =
            switch type {
            case "b": .boolean(try readBool())
            case "t": .unsigned(try readUInt64())
            case "ay": .bytes(try readBytes())
            default: .string(try readString(atMost: TextBound.option))
            }
        try exitContainer()
        return option
    }

    /// Reads a key to be written.
    func readKey() throws -> Key {
        try Key(try readString())
    }
}

extension Dictionary<String, Option> {
    func boolean(_ name: String, default value: Bool) -> Bool {
        if case .boolean(let value) = self[name] { value } else { value }
    }

    func string(_ name: String) -> String? {
        if case .string(let value) = self[name] { value } else { nil }
    }

    func unsigned(_ name: String) -> UInt64? {
        if case .unsigned(let value) = self[name] { value } else { nil }
    }

    func bytes(_ name: String) -> [UInt8]? {
        if case .bytes(let value) = self[name] { value } else { nil }
    }
}

extension MethodCall {
    /// Answers with the result of a piece of work that takes a while.
    @BusActor
    func answer<T>(
        on daemon: Daemon, holding account: UserAccount? = nil, _ work: @escaping @BusActor () async throws -> T,
        reply build: @escaping (Message, T) throws -> Void
    ) {
        let client = daemon.clients.client(peer)
        let bound = daemon.configuration.bounds.waitingCalls
        guard client.callsUnderWay < bound else {
            return fail(.limitsExceeded("\(bound) calls of the connection are not answered yet."))
        }
        let arguments = message.argumentSize(atMost: CallKind.largestArguments) ?? CallKind.largestArguments
        let size = arguments + CallKind.overhead
        do { try client.share.hold(.bytes(size)) } catch { return fail(error) }
        releaseArguments()
        client.callsUnderWay += 1
        account?.callsUnderWay += 1
        daemon.callBegins()
        EventLoop.task { [self] in
            defer {
                client.callsUnderWay -= 1
                account?.callsUnderWay -= 1
                client.share.release(.bytes(size))
                daemon.callEnds()
            }
            do {
                let result = try await work()
                try reply { try build($0, result) }
            } catch {
                fail(BusError(mapping: error, for: client))
            }
        }
    }

    /// Answers without a result once a piece of work that takes a while is done.
    @BusActor
    func answer(
        on daemon: Daemon, holding account: UserAccount? = nil, _ work: @escaping @BusActor () async throws -> Void
    ) {
        answer(on: daemon, holding: account, work, reply: { _, _ in })
    }
}

extension Interface.Member {
    /// Makes a method that doesn't see uncommitted writes, and whose errors are mapped for the client.
    @BusActor
    static func method(
        _ name: String, in arguments: KeyValuePairs<String, String> = [:],
        out results: KeyValuePairs<String, String> = [:], sensitive: Bool = false, on daemon: Daemon,
        _ handler: @escaping @BusActor (Object, MethodCall) throws -> Void
    ) -> Self {
        .method(name, in: arguments, out: results, sensitive: sensitive) { object, call in
            try daemon.answer(object, call, committing: true, handler)
        }
    }

    /// Makes a method that writes. Its call is answered once the write is committed.
    @BusActor
    static func write(
        _ name: String, in arguments: KeyValuePairs<String, String>, on daemon: Daemon,
        _ handler: @escaping @BusActor (Object, MethodCall) throws -> Void
    ) -> Self {
        .method(name, in: arguments, out: ["generation": "t"]) { object, call in
            do { try daemon.answer(object, call, committing: false, handler) } catch let error as BusError {
                daemon.logRefusedWrite(error, of: call.peer.credentials.uid)
                throw error
            }
        }
    }
}

/// The callers that may read a property. Sandboxed ones that may not get an empty value: no text, or zero.
enum PropertyReaders {
    case everybody
    /// Callers outside of sandboxes, because the value reveals where something is.
    case unsandboxed
}

extension Interface.Member {
    /// Makes a property with its readers. A property that can change doesn't show uncommitted writes.
    @BusActor
    static func property(
        _ name: String, _ type: String, changes: PropertyChanges, to readers: PropertyReaders, on daemon: Daemon,
        _ getter: @escaping @BusActor (Object, Message) throws -> Void
    ) -> Self {
        .unguardedProperty(name, type, changes: changes) { object, message, peer in
            if readers == .unsandboxed, daemon.clients.client(peer).isSandboxed {
                return try message.append(emptyOf: type)
            }
            if changes != .never { daemon.writes.commit() }
            try getter(object, message)
        }
    }
}

extension Message {
    /// Appends the empty value of a property's type.
    fileprivate func append(emptyOf type: String) throws {
        switch type {
        case "s": try append("")
        case "as": try append(strings: [])
        case "u": try append(UInt32(0))
        default: throw BusError.failed("Sandboxed apps can't read this property.")
        }
    }
}

extension Daemon {
    /// Answers a call.
    ///
    /// - Parameters:
    ///   - committing: whether to commit staged writes first.
    ///   - handler: shared by all calls, so that a call allocates nothing here.
    fileprivate func answer<Object>(
        _ object: Object, _ call: MethodCall, committing: Bool,
        _ handler: @BusActor (Object, MethodCall) throws -> Void
    ) throws {
        if committing { writes.commit() }
        do { try handler(object, call) } catch { throw BusError(mapping: error, for: clients.client(call.peer)) }
    }
}
