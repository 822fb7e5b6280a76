// SPDX-License-Identifier: Apache-2.0

internal import SDBus

/// Begins the sync cycles of one account: when they are due, and one after the other with those of other accounts
/// where one is suspected of having ended the process.
@BusActor
final class CycleTimer {
    private var timer: EventSource?
    /// Told of networks, as long as an attempt that failed is to be made up for.
    private var routes: EventSource?
    private let record: SyncRecord
    private let run: @BusActor () async -> Void

    /// - Parameters:
    ///   - directory: where it is recorded that a cycle is under way.
    ///   - run: makes the cycles that are due.
    init(in directory: String, run: @escaping @BusActor () async -> Void) {
        record = SyncRecord(in: directory)
        self.run = run
    }

    /// How many seconds an account waits during whose cycles the process died; `nil`: it need not.
    var wait: Int? { record.wait }

    /// Sets when the next cycle is due, in microseconds of the loop's clock; `nil`: not before something happens.
    func set(_ due: UInt64?) {
        timer = nil
        guard let due else { return }
        let now = EventLoop.now
        begin(after: .microseconds(Int64(due > now ? due - now : 0)))
    }

    /// Has a network that comes noted, as long as that is wanted.
    func noteNetworks(_ isWanted: Bool, _ note: @escaping @BusActor () -> Void) throws {
        if !isWanted { return routes = nil }
        if routes == nil { routes = try EventLoop.shared.watchRoutes(note) }
    }

    /// Begins no further cycle, until one is due again.
    func pause() { (timer, routes) = (nil, nil) }

    /// The service ends as it should.
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
