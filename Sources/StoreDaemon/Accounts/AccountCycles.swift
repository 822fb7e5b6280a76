// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import Replication
internal import SDBus
internal import StoreBus
internal import SyncEngine

/// Runs the sync cycles of an account: when they are due, and without taking more of the loop than is the account's
/// share.
@BusActor
final class AccountCycles {
    private unowned let account: UserAccount
    private let service: ServiceContext
    private lazy var timer = CycleTimer(in: account.directory) { [weak account = account] in
        // The account stays until its cycle has ended.
        if let account { await account.cycles.runDue() }
    }
    private var listener: Task<Void, Never>?
    private var refusal: RefusalRecord
    private var share = LoopShare()

    private var sync: AccountSync { account.sync }
    private var logger: Logger { service.logger }

    init(of account: UserAccount, in service: ServiceContext) {
        self.account = account
        self.service = service
        refusal = RefusalRecord(in: account.directory)
    }

    /// Has an account's cycles run here from now on.
    func connect(_ sync: AccountSync) {
        sync.host.onWork = { [weak self] in await self?.rest(after: $0) }
        sync.host.onScheduleChange = { [weak self] in BusActor.assumeIsolated { self?.arm() } }
    }

    /// Begins to listen to the hints of the account's remote.
    func listen() {
        stopListening()
        guard let hints = sync.hints else { return }
        listener = EventLoop.task { [weak self] in
            for await _ in hints { self?.sync.noteHint() }
        }
    }

    func stopListening() { listener?.cancel() }

    /// Begins no more cycles until the next one is due.
    func pause() {
        stopListening()
        timer.pause()
    }

    /// Records that the service ends normally.
    func stop() {
        stopListening()
        timer.stop()
    }

    /// Why an account that is resumed waits before its first cycle; `nil` if it doesn't.
    var obstacle: RemoteError? {
        [timer.obstacle, refusal.error(seconds)].compactMap(\.self)
            .max { $0.retryAfter ?? 0 < $1.retryAfter ?? 0 }
    }

    /// Has the credentials tried, because they are new.
    func forgetRefusal() { refusal.note(nil, seconds) }

    /// The time in seconds since 1970.
    private var seconds: UInt64 { service.environment.time() / 1_000_000 }

    /// Sets the timer for the next cycle.
    private func arm() {
        timer.set(sync.nextCycle)
        do {
            try timer.noteNetworks(sync.nextAttempt != nil) { [weak self] in self?.sync.noteNetwork() }
        } catch {
            logger.debug("The end of an outage is found out by trying: \(error)")
        }
    }

    private func runDue() async {
        logger.debug("A sync cycle of \(account.userName) begins.")
        await sync.runDueCycles()
        refusal.note(sync.lastError, seconds)
        await account.noteUploadedValues()
        await account.move.continueMove()
        let state = sync.state.status.rawValue
        logger.debug("The sync cycle of \(account.userName) has ended (\(state)); the next one is \(timeOfNext).")
        account.user?.rest()
    }

    private var timeOfNext: String {
        sync.nextCycle.map { "in \(($0 - min($0, EventLoop.now)) / 1_000_000) s" } ?? "when something happens"
    }

    /// Leaves the loop to others if the account's cycles have used it for long.
    private func rest(after microseconds: UInt64) async {
        guard let taken = share.take(EventLoop.now, microseconds) else { return }
        await EventLoop.pause(.microseconds(Int64(taken * LoopShare.rest)))
    }
}
