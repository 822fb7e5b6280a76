// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Synchronization

/// The ``DefaultsProcess`` of each user and bus. Each lives as long as the process.
enum DefaultsProcesses {
    private struct Place: Hashable {
        let bus: String
        let uid: UInt32
    }

    private static let all = Mutex<[Place: DefaultsProcess]>([:])

    /// Returns the one of a bus: `system`, `session` or an address.
    ///
    /// - Parameters:
    ///   - uid: the user whose domains are used; only root may use another user's.
    ///   - outboxes: the directory of the outboxes; `nil` for the user's own. Other users' domains have none.
    static func on(bus: String, uid: UInt32 = geteuid(), outboxes: String? = nil) -> DefaultsProcess {
        let process = all.withLock { all in
            let place = Place(bus: bus, uid: uid)
            if let process = all[place] { return process }
            let own = uid == geteuid() ? outboxes ?? OutboxFile.standardDirectory() : nil
            let process = DefaultsProcess(bus: bus, uid: uid, outboxes: own)
            all[place] = process
            return process
        }
        process.link.start(process)
        return process
    }

    /// All of them.
    static var every: [DefaultsProcess] { all.withLock { Array($0.values) } }
}
