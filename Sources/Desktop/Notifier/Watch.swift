// SPDX-License-Identifier: Apache-2.0

internal import EventLoop
internal import Glibc
internal import SDBus
internal import StoreBus

/// Watches the account, and notifies the user of problems that only the user can solve.
@BusActor
final class Watch {
    private let service: Service
    private let desktop: Desktop
    private let file: NotifiedFile
    private var shown: [Trouble: UInt32] = [:]
    private var again: EventSource?
    /// Since when parts of the account have been missing, in microseconds of CLOCK_MONOTONIC.
    private var lacksSince: UInt64?
    private var hasLooked = false
    private var isLooking = false
    private var isOutdated = false

    init(_ service: Service, _ desktop: Desktop, _ file: NotifiedFile) {
        (self.service, self.desktop, self.file) = (service, desktop, file)
    }

    isolated deinit {}

    /// Watches the account until there is none.
    func begin() {
        desktop.onPress = { [unowned self] number in EventLoop.task { await self.open(number) } }
        service.onChange = { [unowned self] in look() }
        look()
    }

    private func look() {
        isOutdated = true
        if isLooking { return }
        isLooking = true
        EventLoop.task { [self] in
            while isOutdated {
                isOutdated = false
                await lookOnce()
            }
            isLooking = false
        }
    }

    private func lookOnce() async {
        do {
            let look = try await service.look()
            if look.state == .signedOut { return await end() }
            hasLooked = true
            let lacked = lacked(look)
            await show(Trouble.of(look, fullStores: try await service.fullStores(), lacked: lacked))
            if let lacked, lacked < Trouble.patience { again = lookAgain(after: Trouble.patience - lacked) }
        } catch let error as BusError where error.name == BusError.limitsExceeded("").name {
            // The service is overloaded, and sends no signal when it isn't any more.
            again = lookAgain(after: .seconds(2))
        } catch {
            // A service that did run starts again with its next user.
            if hasLooked { return log("The account can't be read: \(error)") }
            log("There is no account to watch: \(error)")
            await end()
        }
    }

    /// Returns how long parts of the account have been missing; `nil` if none are.
    private func lacked(_ look: Service.Look) -> Duration? {
        if look.lacksParts {
            lacksSince = lacksSince ?? EventLoop.now
        } else if look.state != .syncing {
            // An attempt that is under way doesn't restart the time.
            lacksSince = nil
        }
        return lacksSince.map { .microseconds(EventLoop.now - $0) }
    }

    // MARK: Notifications

    private func show(_ troubles: Set<Trouble>) async {
        for (trouble, number) in shown where !troubles.contains(trouble) {
            shown[trouble] = nil
            await desktop.withdraw(number)
        }
        var causes = file.read()
        for trouble in troubles where causes.isDue(trouble.cause, at: Int64(time(nil))) {
            do {
                shown[trouble] = try await desktop.notify(trouble, replacing: shown[trouble] ?? 0)
                causes.note(trouble.cause, at: Int64(time(nil)))
                try file.write(causes)
            } catch { log("A notification has failed: \(error)") }
        }
        // A lasting problem is shown again, although the service sends no signal.
        again = troubles.isEmpty ? nil : lookAgain(after: .seconds(NotifiedCauses.day), accuracy: .seconds(600))
    }

    private func lookAgain(after delay: Duration, accuracy: Duration = .milliseconds(1)) -> EventSource {
        EventLoop.shared.after(delay, accuracy: accuracy) { [weak self] in self?.look() }
    }

    private func open(_ number: UInt32) async {
        guard let trouble = shown.first(where: { $0.value == number })?.key else { return }
        do {
            try await desktop.openPanel(at: trouble.page, from: number)
        } catch { log("The panel can't be opened: \(error)") }
    }

    private func end() async {
        for number in shown.values { await desktop.withdraw(number) }
        EventLoop.shared.exit(0)
    }

    private func log(_ text: String) {
        let line = text + "\n"
        write(STDERR_FILENO, line, line.utf8.count)
    }
}
