// SPDX-License-Identifier: Apache-2.0

internal import Etcd
internal import HTTPClient
internal import PropertyList

/// The connection of one device's process to a cluster of the simulation.
final class ClusterGateway: EtcdGateway, @unchecked Sendable {
    // Safe because everything that touches it happens on one thread.
    private let cluster: Cluster
    private let client: Client
    private let timeline: Timeline
    /// Closures that end the calls under way.
    private var endings: [Int: () -> Void] = [:]
    private var count = 0
    private var isClosed = false

    /// How long an answer that has begun to arrive may take.
    private static let longest = 10 * minute

    init(_ cluster: Cluster, _ client: Client, _ timeline: Timeline) {
        (self.cluster, self.client, self.timeline) = (cluster, client, timeline)
    }

    func another() -> any EtcdGateway { ClusterGateway(cluster, client, timeline) }

    func close() {
        isClosed = true
        for (_, end) in endings.sorted(by: { $0.key < $1.key }) { end() }
    }

    /// Waits for the first answer: the cluster's, a timeout, or the one with which `close` ends the call.
    private func wait<T>(
        otherwise last: T, _ begin: (@escaping (T) -> Void) -> Void
    ) async -> T {
        if isClosed { return last }
        count += 1
        let number = count
        nonisolated(unsafe) let result = await withUnsafeContinuation { (continuation: UnsafeContinuation<T, Never>) in
            // Only the waiting task keeps the gateway alive. The cluster may keep the end of a watch that was left.
            let answer: (T) -> Void = { [weak self] result in
                guard self?.endings.removeValue(forKey: number) != nil else { return }
                nonisolated(unsafe) let result = result
                // Safe because both ends are on the same thread.
                continuation.resume(returning: result)
            }
            endings[number] = { answer(last) }
            begin(answer)
        }
        return result
    }

    func ask(
        _ question: EtcdQuestion, of member: HTTPAddress, within time: Duration
    ) async throws(EtcdFailure) -> (answer: Value, time: Int?) {
        let result: Result<Value, EtcdFailure> = await wait(otherwise: .failure(.http(.closed, member))) { answer in
            var hasBegun = false
            let begin = { [timeline] in
                hasBegun = true
                timeline.after(Self.longest) { answer(.failure(.http(.cut(member.host), member))) }
            }
            cluster.ask(question, of: member, client, begin: begin, then: answer)
            timeline.after(time.microseconds) {
                if !hasBegun { answer(.failure(.http(.timedOut(member.host), member))) }
            }
        }
        return (try result.get(), nil)
    }

    func listen(
        _ question: EtcdQuestion, to member: HTTPAddress, _ take: @escaping @Sendable (Value?) -> Bool
    ) async -> Bool {
        var watch: Int?
        await wait(otherwise: ()) { answer in
            watch = cluster.watch(question.body, of: member, client, take: take) { answer(()) }
        }
        if let watch { cluster.leave(watch) }
        return true
    }

    func pause(for time: Duration) async {
        await wait(otherwise: ()) { answer in timeline.after(time.microseconds) { answer(()) } }
    }
}

extension Duration {
    fileprivate var microseconds: UInt64 {
        UInt64(components.seconds) * second + UInt64(components.attoseconds / 1_000_000_000_000)
    }
}
