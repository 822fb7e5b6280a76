// SPDX-License-Identifier: Apache-2.0

// The writes of a process that the service has not taken, as a file: a binary property list.
//
//     Version   1
//     Domain    the domain's name
//     Writes    [ Key, Value (absent if removed), Host, Store (of a key that roams), Time, Generation,
//                 Unanswered [ [ value ], or [ ] for a removal ] (absent if there are none), Owner (absent if 0),
//                 Program (absent if it isn't known), Own (absent if false) ]
//
// A reader ignores a file of another version, of another domain, or that it can't read to its end.

package import PropertyList
internal import PropertyListFiles

/// The writes of a domain that wait for the service.
package struct Outbox: Equatable, Sendable {
    /// A write that waits for the service.
    package struct Write: Equatable, Sendable {
        /// The key.
        package var key: Text
        /// The value; `nil` to remove the key.
        package var value: Value?
        /// Whether the write is to the layer for this host only.
        package var isHost: Bool
        /// The store of the key; `nil` for the domain.
        package var store: Text?
        /// Whether the domain's own value is meant even if the key roams. Otherwise the process may not have known that
        /// it does.
        package var isOwn: Bool
        /// When the key was set, in microseconds since 1970-01-01T00:00:00Z.
        package var time: Int64
        /// The layer's or store's generation that the process had seen; 0 if it had seen none.
        package var generation: UInt64
        /// Values that the process may have given the service for the key before, without an answer; `nil` is a
        /// removal. If the service has one of these, this write is the later one.
        package var unanswered: [Value?]
        /// The number of the process that sends this write itself as long as it runs, as an ``OutboxOwner``; 0 if any
        /// process may deliver it.
        package var owner: Int64
        /// The path of the program, which tells whose own domain it is; `nil` if it isn't known.
        package var program: Text?

        /// Makes a write from its parts.
        package init(
            key: Text, value: Value?, isHost: Bool, store: Text? = nil, isOwn: Bool = false, time: Int64,
            generation: UInt64, unanswered: [Value?] = [], owner: Int64 = 0, program: Text? = nil
        ) {
            self.key = key
            self.value = value
            self.isHost = isHost
            self.store = store
            self.isOwn = isOwn
            self.time = time
            self.generation = generation
            self.unanswered = unanswered
            self.owner = owner
            self.program = program
        }

        /// Returns the time of a write that is made now and follows one that the process has seen, whose clock may have
        /// been ahead.
        static func time(_ now: Int64, after seen: Int64?) -> Int64 {
            seen.map { max(now, $0 < .max ? $0 + 1 : now) } ?? now
        }
    }

    /// The domain.
    package let domain: Text
    /// The writes, one for each key and layer, oldest first.
    package private(set) var writes: [Write] = []

    /// Makes an outbox without writes.
    package init(domain: Text) {
        self.domain = domain
    }

    /// Why a file can't be read.
    package enum Failure: Error, Equatable, CustomStringConvertible {
        /// The file is incomplete, or no outbox.
        case unreadable(String)
        /// Another version of this library wrote it.
        case version(Int64)
        /// The outbox is another domain's.
        case otherDomain

        /// Whether the file is somebody else's, who can read it.
        var isOthers: Bool {
            switch self {
            case .unreadable: false
            case .version, .otherDomain: true
            }
        }

        /// The reason, as a part of a sentence.
        package var description: String {
            switch self {
            case .unreadable(let reason): reason
            case .version(let version): "it is of version \(version)"
            case .otherDomain: "it is another domain's"
            }
        }
    }

    /// Adds writes. The later one of the same key and layer stays: of one process, that is the one added last, and so it
    /// is if the other one's clock was ahead of `now`.
    /// - Parameters:
    ///   - now: the time, in microseconds since 1970-01-01T00:00:00Z.
    ///   - isRepeated: whether a write was added before, so that another process's is later that has replaced it.
    package mutating func add(
        _ added: [Write], now: Int64 = .max, isRepeated: (Write) -> Bool = { _ in false }
    ) {
        var places = Dictionary(writes.enumerated().map { ($1.target, $0) }) { $1 }
        var replaced: Set<Int> = []
        for write in added {
            if let place = places[write.target] {
                let present = writes[place]
                let isLater = present.time > write.time && present.time <= now || isRepeated(write)
                if present.owner != write.owner, isLater { continue }
                replaced.insert(place)
            }
            places[write.target] = writes.count
            writes.append(write)
        }
        writes = writes.enumerated().filter { !replaced.contains($0.offset) }.map(\.element)
    }

    // MARK: The file

    /// The version that is written and read.
    package static let version: Int64 = 1

    /// The file's contents.
    package var encoded: [UInt8] {
        let root: Value = .dictionary([
            "Version": .integer(Self.version), "Domain": .string(domain), "Writes": .array(writes.map(\.encoded)),
        ])
        // This can't fail: only XML can't hold every string.
        return (try? FileFormat.binary.write(root)) ?? []
    }

    /// Reads a file's contents.
    ///
    /// - Throws: ``Failure``.
    package init(_ bytes: [UInt8], domain: Text) throws {
        self.domain = domain
        let value: Value
        do { value = try FileFormat.binary.read(bytes) } catch { throw Failure.unreadable("\(error)") }
        guard case .dictionary(let root) = value, case .integer(let version)? = root["Version"] else {
            throw Failure.unreadable("it has no version")
        }
        guard version == Self.version else { throw Failure.version(version) }
        guard root["Domain"] == .string(domain) else { throw Failure.otherDomain }
        guard case .array(let writes)? = root["Writes"] else { throw Failure.unreadable("it has no writes") }
        try add(
            writes.map {
                guard let write = Write($0) else { throw Failure.unreadable("a write lacks something") }
                return write
            })
    }
}

extension Outbox.Write {
    /// The setting that a write is to.
    struct Target: Hashable {
        fileprivate let key: Text
        fileprivate let isHost: Bool
        fileprivate let store: Text?
    }

    var target: Target { Target(key: key, isHost: isHost, store: store) }

    fileprivate var encoded: Value {
        var entry: [Text: Value] = [
            "Key": .string(key), "Host": .boolean(isHost), "Time": .integer(time),
            "Generation": .integer(Int64(bitPattern: generation)),
        ]
        entry["Value"] = value
        entry["Store"] = store.map { .string($0) }
        if owner != 0 { entry["Owner"] = .integer(owner) }
        entry["Program"] = program.map { .string($0) }
        if isOwn { entry["Own"] = .boolean(true) }
        if !unanswered.isEmpty { entry["Unanswered"] = .array(unanswered.map { .array($0.map { [$0] } ?? []) }) }
        return .dictionary(entry)
    }

    fileprivate init?(_ entry: Value) {
        guard case .dictionary(let entry) = entry, case .string(let key)? = entry["Key"],
            case .boolean(let isHost)? = entry["Host"], case .integer(let time)? = entry["Time"],
            case .integer(let generation)? = entry["Generation"]
        else { return nil }
        if let value = entry["Value"], (try? value.validate(.domain)) == nil { return nil }
        guard (try? Key(key.string, limit: Limits.domain.keyLength)) != nil else { return nil }
        var store: Text?
        if let name = entry["Store"] {
            guard case .string(let text) = name else { return nil }
            store = text
        }
        var unanswered: [Value?] = []
        if let given = entry["Unanswered"] {
            guard case .array(let entries) = given else { return nil }
            for entry in entries {
                guard case .array(let values) = entry, values.count <= 1 else { return nil }
                unanswered.append(values.first)
            }
        }
        var owner: Int64 = 0
        if let given = entry["Owner"] {
            guard case .integer(let number) = given else { return nil }
            owner = number
        }
        var program: Text?
        if let given = entry["Program"] {
            guard case .string(let path) = given else { return nil }
            program = path
        }
        var isOwn = false
        if let given = entry["Own"] {
            guard case .boolean(let flag) = given else { return nil }
            isOwn = flag
        }
        self.init(
            key: key, value: entry["Value"], isHost: isHost, store: store, isOwn: isOwn, time: time,
            generation: UInt64(bitPattern: generation), unanswered: unanswered, owner: owner, program: program)
    }
}
