// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import HTTPClient
import PropertyList
import Replication
import Sealing
import Synchronization

@testable import BackendSupport
@testable import Etcd
@testable import Simulation

/// A cluster in memory, which answers at once and fails where a test wants it to.
final class ModelCluster: EtcdGateway {
    enum Fault: Equatable {
        case lost, replyLost
        /// The answer to another request, as a cache or a confused proxy returns it.
        case other(Value)
    }

    private struct State {
        var model = EtcdModel()
        var fault: (@Sendable (EtcdQuestion) -> Fault?)?
        var questions: [EtcdQuestion] = []
    }

    private let state = Mutex(State())
    private let dice = Dice(seed: 5)

    /// Sets the function that decides which requests fail.
    func onQuestion(_ fault: (@Sendable (EtcdQuestion) -> Fault?)?) { state.withLock { $0.fault = fault } }

    /// The requests so far.
    var questions: [EtcdQuestion] { state.withLock(\.questions) }

    func ask(
        _ question: EtcdQuestion, of member: HTTPAddress, within time: Duration
    ) async throws(EtcdFailure) -> (answer: Value, time: Int?) {
        let result: Result<Value, EtcdFailure> = state.withLock { state in
            state.questions.append(question)
            let fault = state.fault?(question)
            if fault == .lost { return .failure(.http(.cut("model"), member)) }
            if case .other(let answer) = fault { return .success(answer) }
            do throws(EtcdModel.Refusal) {
                let answer = try state.model.answer(question.path, question.body)
                return fault == .replyLost ? .failure(.http(.cut("model"), member)) : .success(answer)
            } catch {
                return .failure(
                    .refusal(EtcdRefusal(status: 400, code: error.code, reason: error.reason, host: "model")))
            }
        }
        return (try result.get(), nil)
    }

    func listen(
        _ question: EtcdQuestion, to member: HTTPAddress, _ take: @escaping @Sendable (Value?) -> Bool
    ) async -> Bool { true }

    func pause(for time: Duration) async { await Task.yield() }
    func another() -> any EtcdGateway { self }
    func close() {}

    // MARK: For tests

    static let prefix = Array("settings/ada".utf8)

    var environment: Environment { Environment(time: { 1_700_000_000_000_000 }, random: { self.dice.roll() }) }

    func client(_ user: String = "ada") throws -> EtcdClient {
        EtcdClient(try EtcdURL("etcd://model/settings/\(user)"), .nothing, self)
    }

    /// Makes a backend of a user's account, for one device.
    func backend(_ protection: Protection, of user: String = "ada") throws -> any RemoteBackend {
        EtcdBackend.make(try client(user), environment, protection: protection)
    }

    func storage() throws -> EtcdStorage { EtcdStorage(try client(), environment) }

    /// The rows, by their keys without the prefix.
    var rows: [String: [UInt8]] {
        state.withLock { state in
            state.model.rows.reduce(into: [:]) {
                $0[String(decoding: $1.key.dropFirst(Self.prefix.count + 1), as: UTF8.self)] = $1.value
            }
        }
    }

    /// Writes a row, or removes it, as another client would.
    func set(_ name: String, _ value: [UInt8]?) throws {
        let key = Self.prefix + Array("/\(name)".utf8)
        let operation = value.map { EtcdOperation.put(key, $0) } ?? .delete(key)
        try state.withLock { state in
            _ = try state.model.answer("/v3/kv/txn", EtcdTransaction(operations: [operation]).json)
        }
    }

    /// Repeats an earlier request, as the network may.
    /// - Returns: the answer.
    @discardableResult
    func repeatQuestion(_ question: EtcdQuestion) throws -> Value {
        try state.withLock { try $0.model.answer(question.path, question.body) }
    }

    /// The account's remote, as the conformance suite needs it.
    func remote(_ protection: Protection) -> EmptyRemote {
        EmptyRemote {
            try self.backend(protection)
        } empty: {
            for name in self.rows.keys { try self.set(name, nil) }
        }
    }
}
