// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import HTTPClient
import PropertyList
import Replication
import ServerTesting
import SyncEngine
import Synchronization
import Testing

@testable import BackendSupport
@testable import Etcd

/// How long the client waits for a member, and that it leaves a silent one.
@Suite(.timeLimit(.minutes(30)))
struct EtcdMemberTests {
    /// Members of which some never answer, and the others answer at once.
    private final class Members: EtcdGateway {
        struct Question: Equatable {
            let port: Int
            let path: String
            let time: Duration

            init(_ port: Int, _ path: String, _ time: Duration) {
                (self.port, self.path, self.time) = (port, path, time)
            }
        }

        private let silent: Set<Int>
        private let asked = Mutex<[Question]>([])

        init(silent: Set<Int>) { self.silent = silent }

        var questions: [Question] { asked.withLock(\.self) }

        func ask(
            _ question: EtcdQuestion, of member: HTTPAddress, within time: Duration
        ) async throws(EtcdFailure) -> (answer: Value, time: Int?) {
            asked.withLock { $0.append(Question(member.port, question.path, time)) }
            if silent.contains(member.port) { throw .http(.timedOut(member.host), member) }
            return (.dictionary(["header": .dictionary([:]), "token": .string("t0ken")]), nil)
        }

        func listen(
            _ question: EtcdQuestion, to member: HTTPAddress, _ take: @escaping @Sendable (Value?) -> Bool
        ) async -> Bool { true }
        func pause(for time: Duration) async {}
        func another() -> any EtcdGateway { self }
        func close() {}
    }

    private let url = "etcd://a:1,b:2,c:3/x"
    private let range = "/v3/kv/range"
    private let status = "/v3/maintenance/status"
    private let signIn = "/v3/auth/authenticate"

    @Test(arguments: [0, 1_000_000])
    func `a member that says nothing is left as soon for a large thing as for a small one`(_ bytes: Int) async throws {
        let members = Members(silent: [1])
        let client = EtcdClient(try EtcdURL(url), .nothing, members)
        _ = try await client.call(range, .dictionary([:]), bytes: bytes)
        let time = Duration.milliseconds(300)
        #expect(members.questions == [.init(1, range, time), .init(2, range, time)])
        _ = try await client.call(range, .dictionary([:]), bytes: bytes)
        #expect(members.questions.last == .init(2, range, time))
    }

    @Test func `members that are all slow are waited for longer in each round, and longer for what is large`()
        async throws
    {
        let members = Members(silent: [1, 2, 3])
        let client = EtcdClient(try EtcdURL(url), .nothing, members)
        await #expect {
            _ = try await client.call(range, .dictionary([:]), bytes: 1_000_000)
        } throws: {
            "\($0)".hasSuffix("No other member could answer either; more than half of them may be down.")
        }
        let times = [0.3, 11, 44].flatMap { [Double](repeating: $0, count: 3) }
        #expect(members.questions.map(\.time) == times.map { .seconds($0) })
    }

    @Test func `a member that is there is given the time that a password takes, and one that is not is left at once`()
        async throws
    {
        let members = Members(silent: [1])
        let client = EtcdClient(try EtcdURL(url), .password(user: "ada", password: "s3cret"), members)
        _ = try await client.call(range, .dictionary([:]))
        let time = Duration.milliseconds(300)
        #expect(
            members.questions == [
                .init(1, status, time), .init(2, status, time), .init(2, signIn, .seconds(2)), .init(2, range, time),
            ])
    }

    @Test(.enabled(if: EtcdCluster.isInstalled), arguments: 0..<3)
    func `signing in, writing and reading much go on while a member is frozen`(_ frozen: Int) async throws {
        let cluster = try EtcdCluster(.init(members: 3, requiresUser: true))
        let devices = try await BackendConformance.devices(2, cluster.remote)
        cluster.freeze(frozen)
        for number in 0..<3 as Range<UInt8> {
            devices[0].set("org.example.Notes", "\(number)", .data([UInt8](repeating: number, count: 900_000)))
        }
        try await BackendConformance.settle(devices)
        let late = BackendDevice("late", seed: 99, backend: try cluster.backend())
        try await late.signIn(creating: false)
        try await late.sync()
        #expect(late.values("org.example.Notes").count == 3 && late.stores == devices[0].stores)
        cluster.freeze(frozen, false)
    }
}
