// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import SDBus
internal import StoreBus
internal import UbiquitousStore

/// The copies that a restore sets aside: data of users who have some already, and data that was replaced.
enum RestoredCopies {
    /// How many copies of each user are kept.
    private static let most = 4

    /// What is left to do once users have other data.
    static let restart: Sentence = """
        Open programs show the restored values once the service has been restarted ("systemctl restart ubiquitous-store")
        """

    /// Marks a directory as such a copy, or as none. A mark is a file.
    static func mark(_ directory: String, isCopy: Bool) {
        let path = "\(directory)/\(DataNames.copyMark)"
        if !isCopy { unlink(path) } else { close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)) }
    }

    /// Returns the number at the end of a copy's name, which is greater than those before it even if the clock was put
    /// back.
    private static func number(of copy: UserDataDescription) -> UInt64 {
        copy.name.split(separator: ".").last.flatMap(DataNames.seconds) ?? 0
    }

    /// Removes the oldest copies of users who have too many. Data that was set aside for other reasons stays.
    @BusActor
    static func removeOldest(_ object: AdministrationObject) async throws {
        let copies = Dictionary(grouping: try await object.data().filter(\.isCopy)) { "\($0.uid).\($0.user)" }
        for copies in copies.values {
            let old = copies.sorted { (number(of: $0), $0.name) > (number(of: $1), $1.name) }.dropFirst(most)
            for copy in old {
                do { try await object.delete(copy.name) } catch let error as UbiquitousStoreError
                    where error.code == .invalidArguments
                {
                    // Another restore has removed it meanwhile.
                    continue
                }
                Output.remark("\(copy.name) was removed: the newest \(most) that restoring set aside are kept")
            }
        }
    }
}
