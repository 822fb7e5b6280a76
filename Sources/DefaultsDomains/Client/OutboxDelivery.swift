// SPDX-License-Identifier: Apache-2.0

internal import Files
internal import Glibc
package import PropertyList
package import SDBus
package import UbiquitousStore

/// Delivers to the service what processes left in a domain's outbox when they ended. A key that changed since stays as
/// it is.
@BusActor
package struct OutboxDelivery {
    private let domain: Text
    private let file: OutboxFile?
    private let connection: ServiceConnection
    private let observer: Observer

    /// The program that delivers.
    package struct Observer {
        /// Its path, whose own domain it may be; `nil` if it isn't.
        package var program: String?
        /// Whether it has set the key of a write in a store later, so that the write is not to be delivered.
        package var hasSet: @BusActor (_ write: Outbox.Write, _ store: Text) -> Bool = { _, _ in false }
        /// Is called with writes that the service has taken or refused, or for which it has kept a newer value.
        package var delivered: @BusActor ([Outbox.Write]) async -> Void = { _ in }

        package init() {}
    }

    /// Makes a delivery of a domain's outbox.
    package init(
        domain: Text, from outboxes: Outboxes, over connection: ServiceConnection, for observer: Observer = Observer()
    ) {
        (self.domain, self.connection, self.observer) = (domain, connection, observer)
        file = outboxes.file(domain)
    }

    /// Delivers the outbox. What the service doesn't answer stays for the next time.
    ///
    /// - Parameter end: until when to wait if another process is delivering, or if processes that run have not sent yet
    ///   what they have put there, as a time of the event loop; `nil` not to wait.
    package func run(waitingUntil end: UInt64? = nil) async {
        guard let file else { return }
        var pause = Duration.milliseconds(10)
        while file.exists {
            guard (try? await deliverAbandoned(file)) != nil, let end, file.read() != nil, EventLoop.now < end else {
                return
            }
            try? await Task.sleep(for: pause)
            pause = min(pause * 2, .milliseconds(100))
        }
    }

    /// - Throws: why some of the writes stay for the next time.
    private func deliverAbandoned(_ file: OutboxFile) async throws {
        guard let right = file.delivery() else { return }
        defer { extendLifetime(right) }
        if file.abandoned().isEmpty { return }
        var places = try await Places(of: file, domain, roamingKeys)
        // On a full disk, only an outbox of which nothing is left can be removed.
        var left = places.outdated(in: file, observer)
        var failure = await prepare(file, &places, besides: left)
        for target in places.targets(in: file) {
            // A process may have replaced some of them meanwhile, and sent what replaces them.
            let writes = file.abandoned().filter { places.target($0) == target && !left.contains($0) }
            if writes.isEmpty { continue }
            do {
                let settled = try await deliver(writes, to: target)
                await observer.delivered(settled)
                left += settled
                if (try? file.remove(left)) != nil { left = [] }
            } catch {
                failure = error
            }
        }
        if !left.isEmpty { try file.remove(left) }
        if let failure { throw failure }
    }

    /// Gives writes that know no generation the present one, because they count as made now. Otherwise they would be
    /// made again, over newer values, if they could not be removed from the outbox after the service has taken them.
    /// - Returns: why some of them stay for the next time.
    private func prepare(
        _ file: OutboxFile, _ places: inout Places, besides outdated: [Outbox.Write]
    ) async -> (any Error)? {
        let writes = file.abandoned().filter { places.target($0) == nil && !outdated.contains($0) }
        var (generations, failure) = ([OutboxPlace: UInt64](), (any Error)?.none)
        for place in Set(writes.compactMap(places.place)) {
            do {
                generations[place] = try await Patience().call { try await connection.generation(of: place) }
            } catch let error as UbiquitousStoreError where error.isRefusal && error.code != .limitsExceeded {
                // The service refuses the writes as well.
                generations[place] = 1
            } catch {
                failure = error
            }
        }
        if generations.isEmpty { return failure }
        let found = Dictionary(grouping: writes, by: \.target)
        do {
            try file.update { [places] write in
                if outdated.contains(write) { return nil }
                guard found[write.target]?.contains(write) == true, let place = places.place(write),
                    let generation = generations[place]
                else { return write }
                var prepared = write
                (prepared.store, prepared.generation) = (place.store, generation)
                prepared.unanswered.append(write.value)
                return prepared
            }
        } catch let error where error.number == EWOULDBLOCK {
            // Another process is stopped while it has the lock, and the file can't be removed either.
            return error
        } catch {
            // A full disk has no room for that, but the file can be removed. If anything were left in it, what the service
            // has taken would be delivered again.
            let isAll = file.read()?.writes.count == writes.count + outdated.count
            if isAll, generations.count == 1, failure == nil { places.present = generations }
        }
        return failure
    }

    /// Returns which keys roam, and where to, for the program that wrote; `nil` if the service doesn't say it.
    private func roamingKeys(of writer: Text?) async throws -> RoamingKeys? {
        let program = writer?.string ?? observer.program
        return try await connection.openDomains([domain.string], program: program, subscribing: false).first
            .flatMap(RoamingKeys.init)
    }

    /// - Returns: the writes that the service has taken, or will never take. Those for which it has no room now stay for
    ///   the next time.
    private func deliver(_ writes: [Outbox.Write], to target: Target) async throws -> [Outbox.Write] {
        var rest = [writes[...]]
        var settled: [Outbox.Write] = []
        var refused = (lost: [Text](), reason: UbiquitousStoreError?.none)
        while let part = rest.popLast() {
            do {
                try await (part.count == 1 ? Patience() : .none).call {
                    try await connection.deliver(Array(part), to: target.place, since: target.generation)
                }
                settled += part
            } catch let error as UbiquitousStoreError where error.isRefusal {
                // In halves, only those fail in the end that the service refuses by themselves.
                let middle = (part.startIndex + part.endIndex) / 2
                if part.count > 1 {
                    rest += [part[middle...], part[..<middle]]
                    continue
                }
                let all = error.isRefusalOfAll ? Array(([part] + rest).joined()) : Array(part)
                if error.isRefusalOfAll { rest = [] }
                // The user's other programs may have used up what a user may have under way.
                if error.code == .limitsExceeded {
                    logDefaults(all.map(\.key), "of \(target.place.name) wait for the next start: \(error)")
                    continue
                }
                refused = (refused.lost + all.map(\.key), refused.reason ?? error)
                settled += all
            }
        }
        if let reason = refused.reason {
            let verb = refused.lost.count == 1 ? "was not stored and is" : "were not stored and are"
            logDefaults(refused.lost, "of \(target.place.name) \(verb) lost: \(reason)")
        }
        return settled
    }
}

extension OutboxDelivery {
    /// The target of writes that are delivered together: a place, and the generation of it that they know.
    fileprivate struct Target: Hashable {
        let place: OutboxPlace
        let generation: UInt64
    }

    /// Where the writes of an outbox belong.
    @BusActor
    fileprivate struct Places {
        private let domain: Text
        /// By the programs that wrote.
        private var roaming: [Text?: RoamingKeys?] = [:]
        /// The generations for writes that know none.
        var present: [OutboxPlace: UInt64] = [:]

        init(
            of file: OutboxFile, _ domain: Text, _ roamingKeys: @BusActor (Text?) async throws -> RoamingKeys?
        ) async throws {
            self.domain = domain
            for program in Set((file.read()?.writes ?? []).map(\.program)) {
                roaming[program] = try await roamingKeys(program)
            }
        }

        /// Returns a write's place; `nil` if its program has added it since.
        func place(_ write: Outbox.Write) -> OutboxPlace? {
            roaming[write.program].map { OutboxPlace(write, of: domain, $0) }
        }

        /// Returns a write's target; `nil` if there is no generation for it.
        func target(_ write: Outbox.Write) -> Target? {
            guard let place = place(write), let generation = place.generation(of: write) ?? present[place] else {
                return nil
            }
            return Target(place: place, generation: generation)
        }

        /// Returns the targets of abandoned writes, those of earlier writes first: what a program has set in the domain
        /// itself goes if it sets the key in the store later, and not the other way round.
        func targets(in file: OutboxFile) -> [Target] {
            var last: [Target: Int64] = [:]
            for write in file.abandoned() {
                if let target = target(write) { last[target] = max(last[target] ?? .min, write.time) }
            }
            return last.sorted { $0.value < $1.value }.map(\.key)
        }

        /// Returns the writes that are not to be delivered: of the same key in the same place, an outbox can have several
        /// whose processes did not agree on the place, and the program that delivers may have set it later.
        func outdated(in file: OutboxFile, _ observer: Observer) -> [Outbox.Write] {
            var last: [OutboxPlace: [Text: Int64]] = [:]
            for write in file.read()?.writes ?? [] {
                guard let place = place(write) else { continue }
                let earlier = last[place]?[write.key] ?? .min
                last[place, default: [:]][write.key] = max(earlier, write.time)
            }
            return file.abandoned().filter { write in
                guard let place = place(write) else { return false }
                if let latest = last[place]?[write.key], latest > write.time { return true }
                return place.store.map { observer.hasSet(write, $0) } ?? false
            }
        }
    }
}
