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

    private let connection: BusConnection
    private var logind: ObservedService?
    private var isThere = false
    /// The sessions of users, by their paths.
    private var sessions: [String: Session] = [:]
    /// The paths of sessions to read again; `nil` if all are.
    private var stale: Set<String>? = []
    private var reading: Task<Void, Never>?

    private static let path = "/org/freedesktop/login1"
    private static let manager = "org.freedesktop.login1.Manager"
    private static let session = "org.freedesktop.login1.Session"

    init(on connection: BusConnection) { self.connection = connection }

    /// Begins to follow logind, which may start later.
    func start() async throws {
        let logind = ObservedService("org.freedesktop.login1", on: connection) { [weak self] in self?.note(isThere: $0)
        }
        self.logind = logind
        func signal(_ member: String, _ action: @escaping @BusActor (Message) -> Void) -> ObservedService.Signal {
            .init(rule: "path='\(Self.path)',interface='\(Self.manager)',member='\(member)'", action: action)
        }
        try await logind.follow([
            signal("SessionNew") { [weak self] _ in self?.read(nil) },
            signal("SessionRemoved") { [weak self] _ in self?.read(nil) },
            signal("PrepareForSleep") { [weak self] in if (try? $0.readBool()) == false { self?.onWaking?() } },
            .init(rule: ObservedService.changes(of: Self.path + "/session", Self.session, isNamespace: true)) {
                [weak self] in self?.read($0.path)
            },
        ])
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

    /// Reads one session again, or all of them. Requests that come meanwhile are served together afterwards.
    private func read(_ path: String?) {
        if let path { stale?.insert(path) } else { stale = nil }
        guard reading == nil else { return }
        reading = EventLoop.task { [weak self] in
            while let self, stale != [] {
                await readStale()
                await EventLoop.pause(ObservedService.rest)
            }
            self?.reading = nil
        }
    }

    private func readStale() async {
        let paths = stale
        stale = []
        guard let logind else { return }
        do {
            var next = try await paths == nil ? list(logind) : sessions
            for path in paths ?? Set(next.keys) where next[path] != nil {
                next[path]?.isAttended = try await isAttended(path, logind)
            }
            (sessions, isThere) = (next, true)
        } catch {
            // Either logind or the session has gone, and a signal reports both.
        }
        onChange?()
    }

    private func list(_ logind: ObservedService) async throws -> [String: Session] {
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

    private func isAttended(_ path: String, _ logind: ObservedService) async throws -> Bool {
        func flag(_ name: String) async -> Bool {
            (try? await logind.property(path, Self.session, name) { try $0.readBool() }) ?? false
        }
        guard await flag("Active") else { return false }
        let (isIdle, isLocked) = (await flag("IdleHint"), await flag("LockedHint"))
        return !isIdle && !isLocked
    }
}
