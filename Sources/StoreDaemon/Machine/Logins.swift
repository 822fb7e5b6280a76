// SPDX-License-Identifier: Apache-2.0

internal import Replication
internal import SDBus

/// The users who are logged in and present, as logind reports them (org.freedesktop.login1(5)).
@BusActor
final class Logins {
    /// Called when a user's presence changes.
    var onChange: (@BusActor () -> Void)?
    /// Called when the machine wakes up.
    var onWaking: (@BusActor () -> Void)?

    private struct Session {
        let uid: UInt32
        var isAttended = false
    }

    private let logind: ObservedService
    private var isThere = false
    /// The sessions of users, by their paths.
    private var sessions: [String: Session] = [:]
    /// The paths of sessions to read again; `nil` if all are.
    private var stale: Set<String>? = []

    private static let path = "/org/freedesktop/login1"
    private static let manager = "org.freedesktop.login1.Manager"
    private static let session = "org.freedesktop.login1.Session"

    init(on connection: BusConnection) { logind = ObservedService("org.freedesktop.login1", on: connection) }

    /// Begins to follow logind, which may start later.
    func start() async throws {
        logind.read = { [weak self] in await self?.readStale() }
        func signal(_ member: String, _ action: @escaping @BusActor (Message) -> Void) -> ObservedService.Signal {
            .init(rule: "path='\(Self.path)',interface='\(Self.manager)',member='\(member)'", action: action)
        }
        let changes = ObservedService.changes(of: Self.path + "/session", Self.session, isNamespace: true)
        try await logind.follow([
            signal("SessionNew") { [weak self] _ in self?.read(nil) },
            signal("SessionRemoved") { [weak self] _ in self?.read(nil) },
            signal("PrepareForSleep") { [weak self] in if (try? $0.readBool()) == false { self?.onWaking?() } },
            .init(rule: changes) { [weak self] in self?.read($0.path) },
        ]) { [weak self] in
            self?.note(isThere: $0)
        }
    }

    /// Returns a user's presence.
    func presence(of uid: UInt32) -> SyncCircumstances.Presence {
        guard isThere else { return .unknown }
        let own = sessions.values.filter { $0.uid == uid }
        return own.isEmpty ? .absent : own.contains(where: \.isAttended) ? .present : .away
    }

    private func note(isThere: Bool) {
        if isThere { return read(nil) }
        (self.isThere, sessions) = (false, [:])
        onChange?()
    }

    // MARK: Reading

    /// Reads one session again, or all of them.
    private func read(_ path: String?) {
        if let path { stale?.insert(path) } else { stale = nil }
        logind.readSoon()
    }

    private func readStale() async {
        let paths = stale
        stale = []
        do {
            var next = try await paths == nil ? list() : sessions
            for path in paths ?? Set(next.keys) where next[path] != nil {
                next[path]?.isAttended = await isAttended(path)
            }
            guard logind.isThere else { return }
            (sessions, isThere) = (next, true)
        } catch {
            // Either logind or the session has gone, and a signal reports both.
        }
        onChange?()
    }

    private func list() async throws -> [String: Session] {
        let all = try await logind.call(Self.path, Self.manager, "ListSessions") { answer in
            var found: [String: Session] = [:]
            try answer.enterContainer("a", "(susso)")
            while try answer.enterContainer("r", "susso") {
                _ = try answer.readString()
                let uid = try answer.readUInt32()
                for _ in 0..<2 { try answer.skip() }
                found[try answer.readString()] = Session(uid: uid)
                try answer.exitContainer()
            }
            return found
        }
        var people: [String: Session] = [:]
        for (path, session) in all {
            // Others are sessions of greeters, of cron, or of a user's service manager.
            let kind = try? await logind.property(path, Self.session, "Class") { try $0.readString() }
            if kind?.hasPrefix("user") == true { people[path] = session }
        }
        return people
    }

    private func isAttended(_ path: String) async -> Bool {
        func flag(_ name: String) async -> Bool {
            (try? await logind.property(path, Self.session, name) { try $0.readBool() }) ?? false
        }
        guard await flag("Active") else { return false }
        let (isIdle, isLocked) = (await flag("IdleHint"), await flag("LockedHint"))
        return !isIdle && !isLocked
    }
}
