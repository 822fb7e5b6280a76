// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import HTTPClient
import PropertyList
import Replication
import Sealing
import SeededRandom
import Synchronization

@testable import Etcd

/// A cluster whose answers have the right form but extreme values, drawn from a seed.
final class HostileGateway: EtcdGateway {
    /// The source of all answers.
    private let random: Mutex<SplitMix>
    /// One in this many values is extreme.
    private let rarity: UInt64
    /// Whether the account is behind a fence.
    private let isEncrypted: Bool
    private let isClosed = Atomic(false)

    init(seed: UInt64, rarity: UInt64, isEncrypted: Bool = false) {
        random = Mutex(SplitMix(seed: seed))
        (self.rarity, self.isEncrypted) = (rarity, isEncrypted)
    }

    func ask(
        _ question: EtcdQuestion, of member: HTTPAddress, within time: Duration
    ) async throws(EtcdFailure) -> (answer: Value, time: Int?) {
        if isClosed.load(ordering: .relaxed) { throw .http(.closed, member) }
        return (
            random.withLock { random in
                var answer = Answer(&random, rarity, isEncrypted)
                return answer.answer(to: question)
            }, nil
        )
    }

    func listen(
        _ question: EtcdQuestion, to member: HTTPAddress, _ take: @escaping @Sendable (Value?) -> Bool
    ) async -> Bool {
        for _ in 0..<8 {
            if !take(event()) { break }
        }
        return random.withLock { $0.next() % 2 == 0 }
    }

    private func event() -> Value? {
        random.withLock { random in
            var answer = Answer(&random, rarity, isEncrypted)
            return answer.event()
        }
    }

    func pause(for time: Duration) async { await Task.yield() }
    func another() -> any EtcdGateway { self }
    func close() { isClosed.store(true, ordering: .relaxed) }
}

/// One answer, made of random numbers.
private struct Answer {
    private var random: SplitMix
    private let rarity: UInt64
    private let isEncrypted: Bool

    init(_ random: inout SplitMix, _ rarity: UInt64, _ isEncrypted: Bool) {
        (self.random, self.rarity, self.isEncrypted) = (SplitMix(seed: random.next()), rarity, isEncrypted)
    }

    private static let numbers = [
        "0", "1", "-1", "4611686018427387903", "4611686018427387904", "9223372036854775806", "9223372036854775807",
        "-9223372036854775808", "18446744073709551615", "99999999999999999999", "", "x",
    ]
    /// The key of the encrypted account.
    private static let held = HeldKey(time: 1_700_000_000_000_000, random: Dice(seed: 77).roll)
    private static let texts = [
        "", "\u{0}", "\u{1B}[2J", "\u{202E}", String(repeating: "n", count: 5000), "%", "%00", "%ZZ", "../..", "ü",
    ]

    private mutating func isExtreme() -> Bool { random.next() % rarity == 0 }
    private mutating func pick<T>(_ values: [T]) -> T { values[Int(random.next() % UInt64(values.count))] }

    private mutating func number() -> Value {
        isExtreme() ? .string(Text(pick(Self.numbers))) : .string(Text(String(1000 + random.next() % 3)))
    }

    private mutating func flag() -> Value { .boolean(random.next() % 2 == 0) }

    private mutating func header() -> Value {
        .dictionary(["revision": number(), "cluster_id": number()])
    }

    mutating func answer(to question: EtcdQuestion) -> Value {
        if question.path == "/v3/kv/range" {
            var fields = range(question.body)
            fields["header"] = header()
            return .dictionary(fields)
        }
        let isDone = random.next() % 4 > 0
        var answers = (question.body[isDone ? "success" : "failure"]?.elements ?? []).map { operation in
            Value.dictionary(["response_range": .dictionary(range(operation["request_range"] ?? .dictionary([:])))])
        }
        if isExtreme() { answers = Array(answers.dropLast()) }
        return .dictionary(["header": header(), "succeeded": .boolean(isDone), "responses": .array(answers)])
    }

    mutating func event() -> Value? {
        if isExtreme() { return nil }
        var fields: [Text: Value] = ["header": header()]
        if random.next() % 2 == 0 { fields["created"] = .boolean(true) }
        if isExtreme() { fields["compact_revision"] = number() }
        if isExtreme() { fields["canceled"] = flag() }
        if isExtreme() { fields["events"] = .array([.dictionary(["kv": .dictionary(["mod_revision": number()])])]) }
        return .dictionary(fields)
    }

    private mutating func range(_ question: Value) -> [Text: Value] {
        guard let key = question["key"]?.bytes else { return [:] }
        let path = String(decoding: key, as: UTF8.self)
        let isOne = question["range_end"] == nil
        let rows = (0..<(isOne ? 1 : random.next() % 4)).map { _ in row(path, isOne ? key : key + name(path)) }
        var fields: [Text: Value] = ["kvs": .array(rows)]
        if !isOne { fields["more"] = .boolean(random.next() % 8 > 0) }
        return fields
    }

    private mutating func row(_ path: String, _ key: [UInt8]) -> Value {
        .dictionary(["key": .base64(key), "value": .base64(value(path)), "mod_revision": number()])
    }

    /// A possible rest of a key below a path.
    private mutating func name(_ path: String) -> [UInt8] {
        if isExtreme() { return Array(pick(Self.texts).utf8) }
        if path.hasSuffix("/blob/a/") { return Array("\(Self.held.key.identifier)".utf8) }
        if path.hasSuffix("/blob/s/") {
            let name = Bits128(high: random.next() % 3, low: 1).description
            return Array((name + (random.next() % 2 == 0 ? "/000000" : "")).utf8)
        }
        if ["/device/", "/context/", "/blob/h/"].contains(where: path.contains) {
            return Array(Origin(bits: random.next()).description.utf8)
        }
        return Array("name\(random.next() % 9)".utf8)
    }

    private mutating func value(_ path: String) -> [UInt8] {
        if isExtreme() { return (0..<random.next() % 40).map { _ in UInt8(truncatingIfNeeded: random.next()) } }
        if path.contains("/blob/a/") { return Self.held.marker.bytes }
        if path.contains("/blob/") { return pick([[0, 255, 255, 127], [0, 2], [0], [], [1, 2, 3]]) }
        if path.hasSuffix("/account") {
            if isEncrypted, random.next() % 4 > 0 { return EtcdAccount.fence }
            return EtcdAccount([Bits128(high: 1, low: 1)], token: random.next() % 3).encoded
        }
        if path.contains("/device/") {
            let device = RemoteDevice(identifier: pick(Self.texts), name: pick(Self.texts))
            return EtcdDevice(device, publication: random.next(), count: .max).encoded
        }
        if path.contains("/context/") { return Array(pick(Self.numbers).utf8) }
        return entry()
    }

    private mutating func entry() -> [UInt8] {
        var encoder = CanonicalEncoder()
        encoder.byte(UInt8(random.next() % 9))
        encoder.varint(isExtreme() ? .max : 1_700_000_000_000)
        encoder.varint(isExtreme() ? .max : random.next() % (1 << 16))
        encoder.fixed64(random.next())
        encoder.varint(isExtreme() ? .max : UInt64(Int64.max))
        if random.next() % 2 == 0 { encoder.varint(isExtreme() ? .max : random.next() % 100) }
        return encoder.bytes
    }
}
