// SPDX-License-Identifier: Apache-2.0

internal import AppManifest
internal import Glibc
internal import ManagedDefaults
internal import PropertyList
internal import SDBus
internal import StoreBus
internal import UbiquitousStore

/// The answer of `OpenDomains` about one domain.
struct OpenedDomain: Sendable {
    let name: Text
    /// The domain's layer; `nil` if it has to be read separately, because it didn't fit into the answer.
    var values: (generation: UInt64, values: [Text: Value])?
    var host: (generation: UInt64, values: [Text: Value])?
    var managed: ManagedDomain?
    /// The store of the keys that roam, for the app's own domain; empty if none roam.
    var store: String?
}

/// Keeps a process's copies the same as the service's: one connection for all domains.
@BusActor
final class DefaultsLink {
    private let address: BusAddress
    /// The user whose domains these are.
    private let uid: UInt32
    private weak var process: DefaultsProcess?
    private var connection: ServiceConnection?
    private var match: Slot?
    private var opened: Set<Text> = []
    /// The open domains whose changes the service doesn't signal, because the user follows too many.
    private var unfollowed: Set<String> = []
    private var following: EventSource?
    private var isOpening = false
    private var isUp = false
    /// The number of the attempt. What belongs to an earlier one is discarded.
    private var attempt = 0
    private var failures = 0
    private var retry: EventSource?
    private var fetching: Set<SearchList.Layer> = []
    private var fetchAgain: Set<SearchList.Layer> = []
    private var outboxTimer: EventSource?

    nonisolated init(_ address: BusAddress, _ uid: UInt32) {
        (self.address, self.uid) = (address, uid)
    }

    // Any thread may release the last reference, and libsystemd's objects belong to the loop's thread.
    isolated deinit {}

    nonisolated func start(_ process: DefaultsProcess) {
        EventLoop.task {
            if self.process == nil { self.process = process }
        }
    }

    // MARK: Opening

    /// Opens domains that were not wanted before.
    func domainsWanted() {
        if retry != nil && !isUp { return }
        open()
    }

    private func open() {
        if isOpening { return }
        isOpening = true
        retry = nil
        // Calls that are under way continue: only the loss of the service invalidates them.
        let attempt = attempt
        EventLoop.task {
            do {
                try await self.openWanted(attempt)
                if attempt == self.attempt { self.isOpening = false }
            } catch {
                if attempt == self.attempt { self.lose() }
            }
        }
    }

    private func openWanted(_ attempt: Int) async throws {
        let connection = try await connected()
        guard attempt == self.attempt, let process else { return }
        var askedAgain: Set<Text> = []
        opening: while true {
            let wanted = process.gates.wanted.filter { !opened.contains($0) }
            if wanted.isEmpty { break }
            for domain in wanted {
                let observer = deliveryObserver(domain, process)
                await OutboxDelivery(domain: domain, from: process.outboxes, over: connection, for: observer).run()
            }
            for first in stride(from: 0, to: wanted.count, by: Self.domainsInACall) {
                let names = wanted[first..<min(first + Self.domainsInACall, wanted.count)]
                let domains = try await open(names.map(\.string), process.program, connection)
                guard attempt == self.attempt else { return }
                // The service may have come, or another program may have given up on it, after the delivery. What that
                // program left is newer than what this one still has to send.
                let left = names.filter { !askedAgain.contains($0) && process.outboxes.hasAbandoned($0) }
                askedAgain.formUnion(left)
                if !left.isEmpty { continue opening }
                take(domains, process)
                // A domain that doesn't exist for this program is empty.
                process.gates.open(Set(names).subtracting(domains.map(\.name)))
                opened.formUnion(names)
            }
        }
        guard attempt == self.attempt else { return }
        isUp = true
        failures = 0
        for layer in process.unsettled { EventLoop.task { await self.send(layer) } }
    }

    private func deliveryObserver(_ domain: Text, _ process: DefaultsProcess) -> OutboxDelivery.Observer {
        var observer = OutboxDelivery.Observer()
        observer.program = process.program
        observer.hasSet = { process.hasSet(after: $0, of: domain, in: $1) }
        observer.delivered = { writes in
            process.noteDelivered(writes, domain)
            // The store has a connection of its own, so its copy may be older.
            if writes.contains(where: { $0.store != nil }) { await process.mirror(domain)?.refresh() }
        }
        return observer
    }

    /// Takes over the answer about domains, and reads what did not fit into it.
    private func take(_ domains: [OpenedDomain], _ process: DefaultsProcess) {
        process.gates.found()
        for domain in domains {
            process.opened(domain)
            if domain.values == nil { readAlone(domain.name) }
        }
    }

    /// Opens domains, and follows them if the service lets this user follow more.
    private func open(
        _ names: [String], _ program: String?, _ connection: ServiceConnection
    ) async throws -> [OpenedDomain] {
        do {
            // An overloaded service refuses with the same error.
            return try await Patience(delays: [.milliseconds(250), .milliseconds(500)]).call {
                try await connection.openDomains(names, program: program, ofUser: uid)
            }
        } catch let error as UbiquitousStoreError where error.code == .limitsExceeded {
            let domains = try await connection.openDomains(names, program: program, subscribing: false, ofUser: uid)
            if unfollowed.isEmpty { logDefaults("Changes by other programs are not seen for now: \(error.message)") }
            unfollowed.formUnion(names)
            followLater()
            return domains
        }
    }

    /// Tries every half a minute to follow the domains that could only be read.
    private func followLater() {
        following = EventLoop.shared.after(.seconds(30), accuracy: .seconds(10)) { [weak self] in
            EventLoop.task { await self?.follow() }
        }
    }

    private func follow() async {
        let (names, attempt) = (Array(unfollowed.sorted().prefix(Self.domainsInACall)), attempt)
        guard isUp, let connection, let process, !names.isEmpty else { return }
        let domains = try? await connection.openDomains(names, program: process.program, ofUser: uid)
        guard attempt == self.attempt else { return }
        if let domains {
            take(domains, process)
            unfollowed.subtract(names)
        }
        if !unfollowed.isEmpty { followLater() }
    }

    /// How many domains a call may open. The service limits them, because it holds the layers of each.
    private static let domainsInACall = 24

    private func connected() async throws -> ServiceConnection {
        if let connection, connection.isOpen { return connection }
        let connection = try await ServiceConnection.open(address, description: "UserDefaults")
        connection.onOwnerChange = { [weak self] in self?.ownerChanged(from: $0) }
        connection.onDisconnect { [weak self] in self?.lose() }
        let rule = """
            type='signal',sender='\(BusNames.service)',interface='\(BusNames.domainInterface)',member='DidChange',\
            path_namespace='\(BusNames.defaultsRoot)'
            """
        match = try await connection.bus.addMatch(rule) { [weak self, weak connection] signal in
            guard let owner = connection?.owner, signal.sender == owner, let path = signal.path else { return }
            guard let self, let change = try? DomainSignal(signal, path: path, uid: self.uid) else { return }
            // An earlier answer resumes its task in a job. Signals use a job too, so that both are handled in order.
            EventLoop.task { self.received(change) }
        }
        self.connection = connection
        return connection
    }

    private func ownerChanged(from former: String?) {
        if connection?.owner == nil {
            lose()
        } else if former != nil || !isOpening {
            forget()
            open()
        }
    }

    private func forget() {
        attempt += 1
        isOpening = false
        isUp = false
        opened = []
        (unfollowed, following) = ([], nil)
        fetching = []
        fetchAgain = []
    }

    private func lose() {
        forget()
        process?.lost()
        if connection?.isOpen != true {
            match = nil
            connection = nil
        }
        retryLater()
    }

    /// Retries after 0.1 s, and after twice as long each time, at most a minute.
    private func retryLater() {
        // The bus signals when a service starts.
        if connection?.isOpen == true && connection?.owner == nil && failures > 2 { return }
        let delay = Duration.milliseconds(min(60_000, 100 << min(failures, 10)))
        failures += 1
        retry = EventLoop.shared.after(delay, accuracy: delay / 4) { [weak self] in
            self?.retry = nil
            self?.open()
        }
    }

    private func place(_ layer: SearchList.Layer) -> LayerAddress? {
        layer.place.map { LayerAddress($0.domain, isHost: $0.isHost, uid: uid) }
    }

    // MARK: Writing

    /// Sends the pending writes of a layer.
    func send(_ layer: SearchList.Layer) async {
        let attempt = attempt
        while isUp, let connection, let process, let place = place(layer), opened.contains(place.domain),
            let call = process.nextCall(layer)
        {
            await process.updateOutboxBeforeSending(place.domain)
            guard attempt == self.attempt else { return }
            do {
                let generation = try await (call.isIndivisible ? Patience.long : .none).call {
                    // After the service has gone, the write is a late one, and is made again as such.
                    guard attempt == self.attempt else { throw Self.notRunning }
                    return try await connection.apply(call.changes, to: place, unlessChangedSince: call.since)
                }
                guard attempt == self.attempt else { return }
                process.acknowledged(layer, generation)
                // Only a snapshot tells which late writes won. The next call follows it.
                if call.since != nil { return fetch(layer) }
            } catch let error as UbiquitousStoreError where error.isRefusal {
                guard attempt == self.attempt else { return }
                process.refused(layer, error)
            } catch {
                if attempt == self.attempt { lose() }
                break
            }
        }
        fillOutboxesLater()
    }

    /// Puts what is not acknowledged after a second into outboxes, where the next process finds it.
    func fillOutboxesLater() {
        guard outboxTimer == nil, process?.isUnsettled == true else { return }
        outboxTimer = EventLoop.shared.after(.seconds(1)) { [weak self] in
            guard let self else { return }
            outboxTimer = nil
            if let process { Settlement(process: process).fillOutboxesSoon() }
        }
    }

    private static let notRunning = UbiquitousStoreError(.serviceUnavailable, "The service isn't running.")

    /// Waits until everything that was written is on disk.
    func synchronize(_ domain: Text) async throws {
        guard let connection, isUp else { throw Self.notRunning }
        try await connection.synchronize(LayerAddress(domain, uid: uid))
    }

    /// Returns the domains that the service has.
    func listDomains() async throws -> [String] {
        guard let connection, isUp else { throw Self.notRunning }
        return try await connection.domains(ofUser: uid)
    }

    /// Returns earlier values of a key.
    func history(_ key: String, _ place: LayerAddress) async throws -> [[String: Value]] {
        guard let connection, isUp else { throw Self.notRunning }
        return try await connection.history(key, place)
    }

    // MARK: Reading

    private func received(_ signal: DomainSignal) {
        if signal.reason == ChangeReason.managed { return readManaged(signal.domain) }
        guard signal.reason != ChangeReason.quotaViolation else { return }
        fetch(.init(of: signal.domain, isHost: signal.isHost))
    }

    private func fetch(_ layer: SearchList.Layer) {
        // Opening the domain again reads it.
        guard let connection, let process, let place = place(layer) else { return }
        guard fetching.insert(layer).inserted else {
            fetchAgain.insert(layer)
            return
        }
        let attempt = attempt
        EventLoop.task {
            do {
                let snapshot = try await connection.snapshot(place, since: process.generation(layer))
                guard attempt == self.attempt else { return }
                process.loaded(layer, snapshot)
                self.fetching.remove(layer)
                if self.fetchAgain.remove(layer) != nil { self.fetch(layer) }
                await self.send(layer)
            } catch {
                if attempt == self.attempt { self.lose() }
            }
        }
    }

    private func readAlone(_ domain: Text) {
        fetch(.domain(domain))
        fetch(.host(domain))
        readManaged(domain)
    }

    private func readManaged(_ domain: Text) {
        guard let connection, let process else { return }
        let (attempt, uid) = (attempt, uid)
        EventLoop.task {
            do {
                // All programs read them at once when a file has changed.
                try await Patience().call {
                    // Only this call returns the keys that the manifest makes roam, and nothing of a large domain.
                    if process.program != nil || process.mayRoam(domain) {
                        let opened = try await connection.openDomains(
                            [domain.string], program: process.program, subscribing: false)
                        guard attempt == self.attempt else { return }
                        if let domain = opened.first, domain.managed != nil { return process.managed(domain) }
                    }
                    let managed = try await connection.managed(LayerAddress(domain, uid: uid))
                    if attempt == self.attempt { process.managed(domain, managed) }
                }
            } catch {
                // Opening the domain again reads them.
                if attempt == self.attempt { self.lose() }
            }
        }
    }
}

extension UbiquitousStoreError {
    /// Whether a write of one key is refused for a reason that holds for any other key too, such as that the user may
    /// have no more domains.
    var isRefusalOfAll: Bool { [.accessDenied, .limitsExceeded, .unknownObject].contains(code) }

    /// Whether the service refuses a write for good.
    var isRefusal: Bool { isFinalRefusal || isRefusalOfAll }
}
