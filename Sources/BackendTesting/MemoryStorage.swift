// SPDX-License-Identifier: Apache-2.0

public import Blobs
public import Replication
internal import Synchronization

/// A storage of blobs in memory, which several backends can share like a folder. It counts requests, and fails in
/// the ways of real storages if a test says so.
public final class MemoryStorage: BlobStorage {
    private let state = Mutex(State())

    /// One request of a backend.
    public struct Request: Equatable, Sendable {
        /// The kind of request.
        public let action: Action
        /// The name of the blob or folder.
        public let name: String
        /// How many bytes it writes.
        public let bytes: Int

        /// The kinds of requests.
        public enum Action: Equatable, Sendable {
            case check, list, get, put, create, delete
        }
    }

    /// A fault of a request.
    public enum Fault: Equatable, Sendable {
        /// The request never arrives.
        case lost
        /// The request is carried out, but the response never arrives.
        case replyLost
        /// The request is carried out twice.
        case repeated
        /// The response never arrives, and the request is carried out with ``MemoryStorage/arrive()``.
        case delayed
        /// Only this many bytes are written, but the response says that all were.
        case torn(Int)
        /// A read returns the content before the last write.
        case stale
        /// A listing lacks every other name.
        case partial
        /// A listing is empty, and a blob is absent.
        case blind
    }

    private struct State {
        var blobs: [String: [UInt8]] = [:]
        var former: [String: [UInt8]] = [:]
        var versions: [String: Int] = [:]
        var delayed: [(name: String, bytes: [UInt8]?)] = []
        var requests: [Request] = []
        var fault: (@Sendable (Request) -> Fault?)?

        mutating func write(_ name: String, _ bytes: [UInt8]?) {
            former[name] = blobs[name]
            blobs[name] = bytes
            versions[name, default: 0] += 1
        }
    }

    /// Makes an empty storage.
    public init() {}

    // MARK: What tests do

    /// The requests since this was last set.
    public var requests: [Request] {
        get { state.withLock { $0.requests } }
        set { state.withLock { $0.requests = newValue } }
    }

    /// The number of bytes that the ``requests`` wrote.
    public var bytesWritten: Int { requests.reduce(0) { $0 + $1.bytes } }

    /// The number of bytes of all blobs.
    public var totalBytes: Int { state.withLock { $0.blobs.values.reduce(0) { $0 + $1.count } } }

    /// All blobs, by their names.
    public var blobs: [String: [UInt8]] {
        get { state.withLock { $0.blobs } }
        set {
            state.withLock { state in
                for name in Set(state.blobs.keys).union(newValue.keys) where state.blobs[name] != newValue[name] {
                    state.write(name, newValue[name])
                }
            }
        }
    }

    /// Sets the function that decides on faults; `nil` for none.
    public func onRequest(_ fault: (@Sendable (Request) -> Fault?)?) {
        state.withLock { $0.fault = fault }
    }

    /// Carries out the delayed requests, in the order in which they were sent.
    public func arrive() {
        state.withLock { state in
            for write in state.delayed { state.write(write.name, write.bytes) }
            state.delayed = []
        }
    }

    // MARK: BlobStorage

    /// Traits without delays or reports of changes.
    public var traits: BackendTraits { BackendTraits(coalescing: .zero, givesHints: false) }

    /// Checks nothing, because the storage always exists.
    /// - Throws: `RemoteError` with the code `unavailable`, if a fault says so.
    @discardableResult
    public func check(creatingFolder createsFolder: Bool) async throws(RemoteError) -> [String] {
        if try note(.check, "") == .replyLost { throw Self.noAnswer }
        return []
    }

    /// Lists the names in a folder, with versions.
    /// - Throws: `RemoteError` with the code `unavailable`, if a fault says so.
    public func list(_ folder: String) async throws(RemoteError) -> [BlobListing] {
        let fault = try note(.list, folder)
        let listing = state.withLock { state in
            state.blobs.keys.compactMap { name -> BlobListing? in
                let (place, name) = (Self.folder(of: name), String(name.dropFirst(Self.folder(of: name).count)))
                guard place == (folder.isEmpty ? "" : folder + "/") else { return nil }
                return BlobListing(name: name, version: "\(state.versions[place + name] ?? 0)")
            }.sorted { $0.name < $1.name }
        }
        switch fault {
        case .replyLost: throw Self.noAnswer
        case .partial: return listing.enumerated().filter { $0.offset % 2 == 0 }.map(\.element)
        case .blind: return []
        default: return listing
        }
    }

    /// Reads a blob.
    /// - Throws: `RemoteError` with the code `unavailable`, if a fault says so.
    public func get(_ name: String, limit: Int, unless version: String?) async throws(RemoteError) -> BlobContent {
        let fault = try note(.get, name)
        if fault == .replyLost { throw Self.noAnswer }
        if fault == .blind { return .absent }
        return state.withLock { state in
            if fault == .stale, let bytes = state.former[name] { return .content(bytes, version: "stale") }
            guard let bytes = state.blobs[name] else { return .absent }
            let present = "\(state.versions[name] ?? 0)"
            if present == version { return .unchanged }
            return bytes.count > limit ? .unreadable("is too large") : .content(bytes, version: present)
        }
    }

    /// Writes a blob.
    /// - Throws: `RemoteError` with the code `unavailable`, if a fault says so.
    public func put(_ name: String, _ bytes: [UInt8]) async throws(RemoteError) {
        try write(name, bytes, try note(.put, name, bytes.count))
    }

    /// Writes a blob that doesn't exist yet.
    /// - Throws: `RemoteError` with the code `denied` if it exists, or `unavailable` if a fault says so.
    public func create(_ name: String, _ bytes: [UInt8]) async throws(RemoteError) {
        let fault = try note(.create, name, bytes.count)
        if state.withLock({ $0.blobs[name] != nil }) { throw RemoteError(.denied, "\(name) exists already.") }
        try write(name, bytes, fault)
    }

    /// Removes a blob.
    /// - Throws: `RemoteError` with the code `unavailable`, if a fault says so.
    public func delete(_ name: String) async throws(RemoteError) {
        try write(name, nil, try note(.delete, name))
    }

    /// Returns an empty stream, since the storage doesn't report changes.
    public func hints() -> AsyncStream<Void> { AsyncStream { $0.finish() } }

    /// Does nothing, since others share the storage.
    public func close() {}

    // MARK: Parts

    private static var noAnswer: RemoteError { RemoteError(.unavailable, "There was no answer.") }

    private static func folder(of name: String) -> String {
        name.lastIndex(of: "/").map { String(name[...$0]) } ?? ""
    }

    private func note(_ action: Request.Action, _ name: String, _ bytes: Int = 0) throws(RemoteError) -> Fault? {
        let request = Request(action: action, name: name, bytes: bytes)
        let fault = state.withLock { state in
            state.requests.append(request)
            return state.fault?(request)
        }
        if fault == .lost { throw Self.noAnswer }
        return fault
    }

    private func write(_ name: String, _ bytes: [UInt8]?, _ fault: Fault?) throws(RemoteError) {
        state.withLock { state in
            switch fault {
            case .delayed: state.delayed.append((name, bytes))
            case .torn(let length): state.write(name, bytes.map { Array($0.prefix(length)) })
            default: state.write(name, bytes)
            }
            if fault == .repeated { state.write(name, bytes) }
        }
        if fault == .replyLost || fault == .delayed { throw Self.noAnswer }
    }
}
