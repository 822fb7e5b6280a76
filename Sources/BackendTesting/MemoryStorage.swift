// SPDX-License-Identifier: Apache-2.0

public import Blobs
public import Replication
internal import Synchronization

/// A storage of blobs in memory, which several backends may share as devices share a folder. It counts what is done
/// with it, and does what the worst of real storages do, where a test says so.
public final class MemoryStorage: BlobStorage {
    private let state = Mutex(State())

    /// One thing that a backend asks for.
    public struct Request: Equatable, Sendable {
        /// What is asked for.
        public let action: Action
        /// The blob's name, or the folder's.
        public let name: String
        /// How much is written.
        public let bytes: Int

        /// What can be asked for.
        public enum Action: Equatable, Sendable {
            case check, list, get, put, create, delete
        }
    }

    /// What goes wrong with a request.
    public enum Fault: Equatable, Sendable {
        /// It never arrives.
        case lost
        /// It is done, and the answer never arrives.
        case replyLost
        /// It is done twice.
        case repeated
        /// The answer never arrives, and what is written is there only when ``MemoryStorage/arrive()`` says so.
        case delayed
        /// Of what is written only so many bytes are there, and the answer is that all is well.
        case torn(Int)
        /// What is read is what was there before the last write.
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

    /// An empty storage.
    public init() {}

    // MARK: What tests do

    /// Everything that was asked for since the last time that this was set.
    public var requests: [Request] {
        get { state.withLock { $0.requests } }
        set { state.withLock { $0.requests = newValue } }
    }

    /// The bytes that were written by ``requests``.
    public var bytesWritten: Int { requests.reduce(0) { $0 + $1.bytes } }

    /// The bytes of everything that is there.
    public var totalBytes: Int { state.withLock { $0.blobs.values.reduce(0) { $0 + $1.count } } }

    /// Everything that is there, by its name.
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

    /// Decides what goes wrong; `nil` for nothing any more.
    public func onRequest(_ fault: (@Sendable (Request) -> Fault?)?) {
        state.withLock { $0.fault = fault }
    }

    /// What was delayed arrives now, in the order in which it was sent.
    public func arrive() {
        state.withLock { state in
            for write in state.delayed { state.write(write.name, write.bytes) }
            state.delayed = []
        }
    }

    // MARK: BlobStorage

    /// Nothing waits, and nothing is told.
    public var traits: BackendTraits { BackendTraits(coalescing: .zero, tellsOfChanges: false) }

    /// It is always there.
    @discardableResult
    public func check(makingPlace makesPlace: Bool) async throws(RemoteError) -> [String] {
        if try note(.check, "") == .replyLost { throw Self.noAnswer }
        return []
    }

    /// The names in a folder, with versions.
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
    public func put(_ name: String, _ bytes: [UInt8]) async throws(RemoteError) {
        try write(name, bytes, try note(.put, name, bytes.count))
    }

    /// Writes a blob that is not there.
    public func create(_ name: String, _ bytes: [UInt8]) async throws(RemoteError) {
        let fault = try note(.create, name, bytes.count)
        if state.withLock({ $0.blobs[name] != nil }) { throw RemoteError(.denied, "\(name) is there already.") }
        try write(name, bytes, fault)
    }

    /// Removes a blob.
    public func delete(_ name: String) async throws(RemoteError) {
        try write(name, nil, try note(.delete, name))
    }

    /// Tells of nothing.
    public func hints() -> AsyncStream<Void> { AsyncStream { $0.finish() } }

    /// Does nothing: others share the storage.
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
