// SPDX-License-Identifier: Apache-2.0

internal import GRDBSQLite
internal import Glibc
package import PropertyList
internal import Replication

/// The database in a directory, which may be damaged, or made by another program. It isn't opened as the service's.
package struct ClosedDatabase {
    private let directory: String

    private var path: String { "\(directory)/\(DatabaseFile.name)" }

    package init(in directory: String) { self.directory = directory }

    // MARK: Of another program

    /// Prepares a database that another program may have made. Before this, SQLite must not read it.
    ///
    /// A rollback journal can name any file, which SQLite then deletes. The service's databases have one only while
    /// they are being made. A database from a salvage that was interrupted takes its place now, so that it is checked.
    package func prepareForeign() throws(EngineError) {
        do { try Salvage.finishForeign(in: directory) } catch { throw EngineError(error) }
    }

    /// The size in bytes, as the file or its log says; zero if there is no database.
    package var size: Int {
        var status = stat()
        let size = stat(path, &status) == 0 ? Int(status.st_size) : 0
        let said = try? BriefConnection(path, flags: SQLITE_OPEN_READONLY).size()
        return max(size, said ?? 0)
    }

    /// Returns whether the database, if there is one, defines only what this program does.
    package func isOwn() throws(EngineError) -> Bool {
        do { return try Schema.isOwn(path) } catch { throw EngineError(error) }
    }

    /// Returns the table that has more than any version of this program writes; `nil` if none has, or there is no
    /// database. It must be own (``isOwn()``). If it has damage (``damage()``), this may throw although there is an
    /// excess.
    package func excess() throws(EngineError) -> String? {
        do { return try Schema.excess(path) } catch { throw EngineError(error) }
    }

    // MARK: Damaged

    /// Returns what is wrong with the structure of the database; `nil` if nothing is, or there is none. This reads the
    /// whole file.
    ///
    /// Queries of a file whose pages are no tree need not end. What a salvage reads of it is bounded.
    package func damage() throws(EngineError) -> String? {
        do { return try Schema.damage(path) } catch { throw EngineError(error) }
    }

    /// Checks that the disk returns the database. If a read fails, SQLite takes that for damage, although the disk may
    /// return everything the next time.
    /// - Parameter time: the present time, in microseconds since 1970.
    /// - Throws: `EngineError.storage` if the disk doesn't, for ``DatabaseTraces/patience`` at most: then the rest
    ///   counts as lost.
    package func checkDisk(at time: UInt64) throws(EngineError) {
        do { try DatabaseTraces(directory: directory).checkDisk(at: time) } catch { throw EngineError(error) }
    }

    /// Sets a damaged database aside, and makes a new one in its place with what can be read of it.
    ///
    /// No process may have it open, and ``checkDisk(at:)`` comes first. Databases that were set aside before are never overwritten.
    /// - Parameters:
    ///   - time: the present time, in microseconds since 1970.
    ///   - account: the identifier of the account that the device is signed in to, if the caller knows it, for a
    ///     database that is too damaged to tell.
    ///   - isSignedIn: whether an account is signed in, whose values come back from its remote.
    ///   - limits: the limits of a value.
    ///   - random: returns 64 random bits.
    package func setAside(
        at time: UInt64, account: String? = nil, isSignedIn: Bool = true, limits: Limits = .standard,
        random: () -> UInt64 = { .random(in: .min ... .max) }
    ) throws(EngineError) -> SalvageReport {
        do {
            let salvage = Salvage(directory: directory, time: time, limits: limits, isSignedIn: isSignedIn)
            let saved = try salvage.build(knownAccount: account, origin: Origin(bits: random()))
            // What the disk has not returned was not read, and would be taken for lost.
            try DatabaseTraces(directory: directory).checkDisk(at: time)
            let fileName = try salvage.setAside()
            try Salvage.finish(in: directory)
            return SalvageReport(fileName: fileName, salvagedValues: saved.values, account: saved.account)
        } catch {
            throw EngineError(error)
        }
    }
}
