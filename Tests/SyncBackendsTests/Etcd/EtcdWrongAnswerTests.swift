// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import PropertyList
import Replication
import Sealing
import Testing

@testable import Etcd

/// Something between a device and its cluster returns the answer to another request. The device refuses it, and reads
/// everything the next time.
@Suite struct EtcdWrongAnswerTests {
    private static let store = "org.example.Notes"

    private let cluster = ModelCluster()
    private let (first, second): (BackendDevice, BackendDevice)

    init() throws {
        first = BackendDevice("first", seed: 1, backend: try cluster.backend(.none))
        second = BackendDevice("second", seed: 2, backend: try cluster.backend(.none))
    }

    /// The requests for a store's entries so far.
    private func readings(_ store: String = store, of user: String = "ada") -> [EtcdQuestion] {
        cluster.questions.filter { Self.isReading($0, store, of: user) }
    }

    private static func isReading(_ question: EtcdQuestion, _ store: String, of user: String = "ada") -> Bool {
        let entries = EtcdLayout(Array("settings/\(user)".utf8)).entries(store)
        return question.body["success"]?.elements.first?["request_range"]?["key"]?.bytes == entries
    }

    /// Signs in a device whose first request for the store's entries gets this answer, and then honest ones.
    private func signInLate(answering wrong: Value) async throws {
        let late = BackendDevice("late", seed: 3, backend: try cluster.backend(.none))
        try await late.signIn(creating: false)
        cluster.onQuestion { Self.isReading($0, Self.store) ? .other(wrong) : nil }
        await #expect(throws: RemoteError.self) { try await late.sync() }
        #expect(late.values(Self.store) == [:])
        cluster.onQuestion(nil)
        try await BackendConformance.settle([late, first, second])
        #expect(late.values(Self.store) == ["changed": .integer(2), "same": .integer(1)])
    }

    /// Two devices share a store: one key was removed, one has changed, and one is the same.
    /// - Returns: the answer to the second device's first request for the store's entries.
    private func share() async throws -> Value {
        try await first.signIn(creating: true)
        first.set(Self.store, "removed", .integer(1))
        first.set(Self.store, "changed", .integer(1))
        first.set(Self.store, "same", .integer(1))
        try await first.sync()
        try await second.signIn(creating: false)
        try await second.sync()
        let former = try cluster.repeatQuestion(try #require(readings().last))
        first.set(Self.store, "removed", nil)
        first.set(Self.store, "changed", .integer(2))
        try await first.sync()
        return former
    }

    @Test func `a store as it was before the poll is not taken for what it is`() async throws {
        try await signInLate(answering: try await share())
    }

    @Test func `what has changed in a store is not taken for all of it`() async throws {
        _ = try await share()
        try await second.sync()
        try await signInLate(answering: try cluster.repeatQuestion(try #require(readings().last)))
    }

    @Test func `another store's entries are not taken for this one's`() async throws {
        let other = "org.example.Other"
        #expect(other.count == Self.store.count)
        first.set(other, "foreign", .integer(9))
        _ = try await share()
        try await signInLate(answering: try cluster.repeatQuestion(try #require(readings(other).first)))
    }

    @Test func `another user's entries are not taken for this one's`() async throws {
        _ = try await share()
        let stranger = BackendDevice("stranger", seed: 4, backend: try cluster.backend(.none, of: "bob"))
        try await stranger.signIn(creating: true)
        stranger.set(Self.store, "foreign", .integer(9))
        try await stranger.sync()
        let reading = try #require(readings(of: "bob").first)
        try await signInLate(answering: try cluster.repeatQuestion(reading))
    }
}
