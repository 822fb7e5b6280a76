// SPDX-License-Identifier: Apache-2.0

internal import Replication
internal import SDBus

/// Begins the sync cycles of an account when they are due. Accounts that are suspected of having ended the process take
/// turns.
@BusActor
final class CycleTimer {
    private var timer: EventSource?
    /// Watches for networks while a failed attempt is to be repeated.
    private var routes: EventSource?
    private let record: SyncRecord
    private let run: @BusActor () async -> Void

    /// - Parameters:
    ///   - directory: where it is recorded that a cycle is under way.
    ///   - run: runs the cycles that are due.
    init(in directory: String, run: @escaping @BusActor () async -> Void) {
        record = SyncRecord(in: directory)
        self.run = run
    }

    /// Why the account has to wait, if the process died during its cycles; `nil` if it need not.
    var obstacle: RemoteError? { record.obstacle }

    /// Sets when the next cycle is due, in microseconds of the loop's clock; `nil` if not before another event.
    func set(_ due: UInt64?) {
        timer = nil
        guard let due else { return }
        let now = EventLoop.now
        begin(after: .microseconds(Int64(due > now ? due - now : 0)))
    }

    /// Begins or ends watching for networks.
    func noteNetworks(_ isWanted: Bool, _ note: @escaping @BusActor () -> Void) throws {
        if !isWanted { return routes = nil }
        if routes == nil { routes = try EventLoop.shared.watchRoutes(note) }
    }

    /// Begins no more cycles until the next one is set.
    func pause() { (timer, routes) = (nil, nil) }

    /// Records that the service ends normally.
    func stop() {
        pause()
        record.stop()
    }

    private func begin(after delay: Duration) {
        timer = EventLoop.shared.after(delay) { [weak self] in self?.begin() }
    }

    private func begin() {
        timer = nil
        if let turn = record.turn { return begin(after: turn) }
        EventLoop.task { [record, run] in
            record.begin()
            await run()
            record.end()
        }
    }
}
