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
            // The only one is ca-pem.
            case "ay":
                .bytes(
                    try readBytes(
                        atMost: BackendCredentials.longestAuthority, orThrow: BackendCredentials.tooMuchAuthority))
            default: .string(try readString(atMost: TextBound.option))
            }
        try exitContainer()
        return option
    }

    /// Reads a key to be written.
    func readKey() throws -> Key {
        try Key(try readKeyText())
    }

    /// Reads the text of a key, which may be much too long for one, so that it gets the error for that.
    func readKeyText() throws(BusError) -> String {
        try readString(
            atMost: CallKind.largestArguments,
            orThrow: .limitsExceeded("The arguments of this call may have \(CallKind.largestArguments) bytes."))
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
    /// Answers with the result of a piece of work that takes a while. It may be done when this returns, so a handler does
    /// nothing after it.
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
        let size = arguments + CallKind.overheadUnderWay
        do { try client.share.hold(.bytes(size)) } catch { return fail(error) }
        releaseArguments()
        client.callsUnderWay += 1
        account?.callsUnderWay += 1
        daemon.callBegins()
        // What the work does before its first wait belongs to the call, so that its time is the caller's.
        EventLoop.immediateTask { [self] in
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
