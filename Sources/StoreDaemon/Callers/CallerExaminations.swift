// SPDX-License-Identifier: Apache-2.0

internal import Replication
internal import SDBus

/// Examines the processes of new callers, whose calls wait meanwhile.
///
/// It has threads of its own, because `/proc` waits for locks of the kernel that any process can hold: one that makes
/// namespaces with thousands of mounts holds up everybody who reads a process's mounts, for seconds. A user has one
/// thread at most.
@BusActor
final class CallerExaminations {
    private let pool: WorkPool
    private let identity: @Sendable (Int32?) -> CallerIdentity
    private var users: [UInt32: (thread: WorkThread, underWay: Int)] = [:]

    /// The most examinations of a user's processes that are under way or wait.
    static let most = 256

    /// - Parameter identity: examines a process, on another thread.
    nonisolated init(
        threads: Int = 4, _ identity: @escaping @Sendable (Int32?) -> CallerIdentity = { CallerIdentity.of(pid: $0) }
    ) {
        pool = WorkPool(threads: threads, perOwner: 1)
        self.identity = identity
    }

    /// Examines a caller, as ``Peers/examine`` does.
    func examine(
        _ credentials: Credentials, _ done: @escaping @BusActor (Result<PeerContext?, BusError>) -> Void
    ) {
        let (uid, pid) = (credentials.uid, credentials.pid)
        // Root's processes are not examined.
        if uid == 0 { return done(.success(ExaminedCaller(.root))) }
        var user = users[uid] ?? (WorkThread(pool, owner: uid), 0)
        guard user.underWay < Self.most else { return done(.failure(Self.tooMany)) }
        user.underWay += 1
        users[uid] = user
        EventLoop.task { [self, identity, thread = user.thread] in
            let found = await thread.result { identity(pid) }
            end(of: uid)
            done(.success(ExaminedCaller(found)))
        }
    }

    private func end(of uid: UInt32) {
        guard let user = users[uid] else { return }
        users[uid] = user.underWay > 1 ? (user.thread, user.underWay - 1) : nil
    }

    private static let tooMany = BusError.limitsExceeded(
        "Too many of the user's programs have connected at once. Call again.")
}

/// What is known of a caller's process. It is the context of a peer that isn't a client yet.
@BusActor
final class ExaminedCaller: PeerContext {
    let identity: CallerIdentity

    init(_ identity: CallerIdentity) { self.identity = identity }

    /// Returns what was found out about a peer. Where there is no bus, that is done now.
    static func identity(of peer: Peer) -> CallerIdentity {
        if let examined = peer.context as? ExaminedCaller { return examined.identity }
        if !peer.uniqueName.isEmpty { return .unknown }
        return peer.credentials.uid == 0 ? .root : CallerIdentity.of(pid: peer.credentials.pid)
    }
}
