// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import Replication
import Synchronization
import Testing

@testable import Folder

/// Mounts that may hang, with work on a pool of six threads, of which an owner has two.
private final class Mounts: Sendable {
    private let pool: WorkPool
    private let work: FolderWork
    private let gate = DispatchSemaphore(value: 0)
    private let begun = Mutex<[String]>([])

    /// - Parameter seconds: how long a turn is too long.
    init(longestTurn seconds: Int) {
        pool = WorkPool(threads: 6, perOwner: 2, perPlace: 5, longestTurn: seconds)
        work = FolderWork(on: pool, limit: 500_000, pause: 50_000)
    }

    func begin(at mount: String, by owner: UInt32, hanging hangs: Bool = true) async -> RemoteError? {
        await begin(at: mount, by: owner) { [gate] in if hangs { gate.wait() } }
    }

    func begin(at mount: String, by owner: UInt32, _ body: @escaping @Sendable () -> Void) async -> RemoteError? {
        let thread = WorkThread(pool, owner: owner)
        thread.place = mount
        do throws(RemoteError) {
            try await work.result(at: mount, of: owner) { [self] () async throws(RemoteError) in
                await thread.result { [self] in
                    begun.withLock { $0.append(mount) }
                    body()
                }
            }
            return nil
        } catch {
            return error
        }
    }

    func count(at mount: String) -> Int { begun.withLock { $0.count { $0 == mount } } }

    func release() { for _ in 0..<8 { gate.signal() } }
}

@Suite struct FolderWorkTests {
    @Test func `what never answers fails, and until it does, what begins there fails at once`() async throws {
        let mounts = Mounts(longestTurn: 1)
        // Three of a user's mounts hang. The fourth has no thread, but is not to blame, so others go on there.
        var hanging: [Task<RemoteError?, Never>] = []
        for number in 1...3 {
            if number == 3 { try await Task.sleep(for: .milliseconds(2100)) }
            hanging.append(Task { await mounts.begin(at: "/mnt/dead\(number)", by: 1) })
        }
        for (index, task) in hanging.enumerated() {
            let error = await task.value
            #expect(
                error?.message.contains("/mnt/dead\(index + 1) has not answered") == true,
                "\(String(describing: error))")
        }
        let waiting = await mounts.begin(at: "/mnt/alive", by: 1, hanging: false)
        #expect(waiting?.message.contains("waits for others") == true, "\(String(describing: waiting))")
        #expect(await mounts.begin(at: "/mnt/alive", by: 2, hanging: false) == nil)
        #expect(await mounts.begin(at: "/mnt/dead1", by: 1)?.message.contains("/mnt/dead1 has not answered") == true)
        #expect(mounts.count(at: "/mnt/dead1") == 1)
        // It may be something of the user's that hangs there.
        #expect(await mounts.begin(at: "/mnt/dead1", by: 2, hanging: false) == nil)
        mounts.release()
        while await mounts.begin(at: "/mnt/dead1", by: 1, hanging: false) != nil { await Task.yield() }
    }

    @Test func `a mount that never answers several users is refused to all`() async throws {
        let mounts = Mounts(longestTurn: 1)
        let users: ClosedRange<UInt32> = 1...3
        let hanging = users.map { user in Task { await mounts.begin(at: "/mnt/dead", by: user) } }
        for task in hanging { #expect(await task.value != nil) }
        let other = await mounts.begin(at: "/mnt/dead", by: 4, hanging: false)
        #expect(other?.message.contains("/mnt/dead has not answered") == true && mounts.count(at: "/mnt/dead") == 3)
        mounts.release()
        while await mounts.begin(at: "/mnt/dead", by: 4, hanging: false) != nil { await Task.yield() }
    }

    @Test func `what only waits for its turn does not fail, however long that takes`() async throws {
        let mounts = Mounts(longestTurn: 600)
        // All of them together take longer than one may.
        let slow = (0..<12).map { number in
            Task {
                await mounts.begin(at: "/mnt/slow", by: UInt32(number)) {
                    usleep(300_000)
                }
            }
        }
        for task in slow { #expect(await task.value == nil) }
    }

    @Test func `what ends in time has its own result, however much there is`() async throws {
        let work = FolderWork(on: WorkPool(threads: 4), limit: 60_000_000, pause: 50_000)
        await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<200 {
                group.addTask {
                    try await work.result(at: "/mnt/\(number % 3)", of: 1) { () async throws(RemoteError) in
                        if number % 7 == 0 { throw RemoteError(.full, "\(number)") }
                        return number
                    }
                }
            }
            var (sum, errors) = (0, 0)
            while let result = await group.nextResult() {
                switch result {
                case .success(let number): sum += number
                case .failure(let error as RemoteError): errors += error.code == .full ? 1 : 100
                case .failure: errors += 1000
                }
            }
            #expect(errors == 29 && sum == (0..<200).filter { $0 % 7 != 0 }.reduce(0, +))
        }
    }
}
