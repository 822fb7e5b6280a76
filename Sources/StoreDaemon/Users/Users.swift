// SPDX-License-Identifier: Apache-2.0

internal import Files
internal import Glibc
internal import Logging
internal import Replication
internal import SDBus
internal import StoreEngine
internal import SyncEngine

/// The users whose data the service has open.
@BusActor
final class Users {
    private let service: ServiceContext
    let shares: UserShares
    /// The manifests for all users.
    let installed: ManifestDirectories
    let managed: ManagedDirectories
    let room = SharedRoom()
    private lazy var machine = MachineState(in: service) { [unowned self] in all }
    /// Has clients look up a user's stores again.
    var forgetPaths: @BusActor (UInt32) -> Void = { _ in }
    /// Called when a user has signed out.
    var onSignOut: @BusActor () -> Void = {}
    private var open: [UInt32: User] = [:]
    /// Resume accounts whose users' data has to wait.
    private var resumptions: [UInt32: EventSource] = [:]
    private var measuringPace = Pace()
    private var accountsFile = FileStamp("/etc/passwd")
    /// What was read of users whose data isn't open, and when. The look-up of a path that leads nowhere needs it as well.
    private var read: [UInt32: (time: UInt64, manifests: RegisteredManifests)] = [:]
    /// How long that counts, in microseconds. A file may be mended, or have been unreadable for a moment.
    private static let readAgain: UInt64 = 1_000_000
    /// Open users for whom it isn't known yet whether their user id was given to another user.
    private var unchecked: Set<UInt32> = []

    init(
        in service: ServiceContext, sharing shares: UserShares, manifests: ManifestDirectories,
        managed: ManagedDirectories
    ) {
        self.service = service
        self.shares = shares
        installed = manifests
        self.managed = managed
    }

    /// Measures the stores in use of all users, unless that was done just now.
    func measureStores() {
        guard measuringPace.isDue else { return }
        measuringPace.run { for user in open.values { user.measureStores() } }
    }

    /// Returns a user's data, if it is open.
    func openUser(_ uid: UInt32) -> User? { open[uid] }

    /// Returns a user's data, opened if necessary.
    func user(_ uid: UInt32) throws -> User {
        if let user = open[uid] { return user }
        let user = try User(uid, among: self, in: service)
        closeIdle()
        (open[uid], read[uid]) = (user, nil)
        unchecked.insert(uid)
        return user
    }

    /// Returns the manifests that apply to a user, without opening the user's data. Only opening it shows whether the
    /// registered ones are this user's, or a former user's with the same user id.
    func manifests(of uid: UInt32) -> UserManifests {
        if let user = open[uid] { return user.manifests }
        let directory = UserDirectory(of: uid, in: service.configuration.stateDirectory)
        let now = EventLoop.now
        if let known = read[uid], now < known.time + Self.readAgain { return manifests(with: known.manifests) }
        let registered = RegisteredManifests(of: directory, logger: nil)
        if read.count >= Self.mostIdle, let oldest = read.min(by: { $0.value.time < $1.value.time }) {
            read[oldest.key] = nil
        }
        read[uid] = (now, registered)
        return manifests(with: registered)
    }

    /// Returns the manifests that apply to a user who has registered these.
    func manifests(with registered: RegisteredManifests) -> UserManifests {
        UserManifests(
            installed: installed.manifests, registered: registered,
            allowsUndeclared: service.configuration.allowsUndeclared)
    }

    /// The most idle users that stay open. A user who was called once is often called again soon.
    private static let mostIdle = 8

    /// Closes the data of users whose clients have left, once there are more than ``mostIdle``.
    func closeIdle() {
        let idle = open.values.filter { $0.isIdle && !shares.isPresent($0.uid) }
        if idle.count <= Self.mostIdle { return }
        service.writes.commit()
        for user in idle { close(user) }
    }

    /// Finds out whether a user's open data is a former user's with the same id.
    ///
    /// That is looked up when the machine's users have changed, and after the data was opened until the name is known: the
    /// directory service may not have been there at the start. Users from a directory service are not checked again
    /// later.
    /// - Returns: the user whose data has to be closed, because it is a former user's or may be one's, and the owner.
    func former(of uid: UInt32) -> (user: User, owner: RecordedOwner)? {
        let stamp = FileStamp("/etc/passwd")
        if stamp != accountsFile { unchecked.formUnion(open.keys) }
        accountsFile = stamp
        guard unchecked.contains(uid), let user = open[uid] else { return nil }
        let owner = user.directory.owner
        switch owner {
        case .user:
            // It may have been opened before the name was known.
            let time = service.environment.time()
            do { try user.directory.prepare(for: owner, logger: service.logger, time: time) } catch { return nil }
            unchecked.remove(uid)
            return nil
        case .nameless, .perhapsUser: return nil
        case .former, .perhapsFormer: return (user, owner)
        }
    }

    /// Closes a user's data. The next call opens it again.
    func close(_ user: User) {
        user.close()
        open[user.uid] = nil
        unchecked.remove(user.uid)
    }

    /// The ids of the users that have data, open or not.
    var known: [UInt32] {
        // What is open may have been removed from under the service.
        Set(UserDirectory.users(in: service.configuration.stateDirectory)).union(open.keys).sorted()
    }

    var all: [User] { Array(open.values) }

    /// Resumes the accounts that are signed in.
    func resumeAccounts() {
        for uid in known { resumeAccount(of: uid) }
    }

    private func resumeAccount(of uid: UInt32) {
        let directory = UserDirectory(of: uid, in: service.configuration.stateDirectory).path
        do {
            try AccountFile.removeLeft(in: directory)
            try AccountFile.removeRemains(in: directory)
            if AccountFile.exists(in: directory) { try user(uid).rest() }
        } catch {
            service.logger.error(
                "The data of \(UserName.text(of: uid)) can't be opened: \(BusError(mapping: error).message)")
            // The process died in that.
            guard let seconds = (error as? RemoteError)?.retryAfter else { return }
            resumptions[uid] = EventLoop.shared.after(.seconds(seconds)) { [unowned self] in
                resumptions[uid] = nil
                if open[uid] == nil { resumeAccount(of: uid) }
            }
        }
    }

    /// Whether an account is signed in, so that the service has work of its own.
    var hasAccount: Bool { !resumptions.isEmpty || open.values.contains { $0.account.sync.isSignedIn } }

    /// Returns what determines the pace of a user's sync besides the settings.
    func circumstances(of uid: UInt32) -> SyncCircumstances { machine.circumstances(of: uid) }

    /// Follows the machine's state while it matters, because a user has signed in or out.
    func noteAccount(isSignedIn: Bool) { machine.follow(isSignedIn || hasAccount) }

    func close() {
        for user in open.values { user.close() }
        (open, resumptions) = ([:], [:])
    }
}
