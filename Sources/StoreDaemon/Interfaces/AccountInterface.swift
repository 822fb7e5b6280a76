// SPDX-License-Identifier: Apache-2.0

// org.example.UbiquitousStore.Account: a user's account and its sync.

internal import AppManifest
internal import PropertyList
internal import RemoteAddress
internal import Replication
internal import SDBus
internal import StoreBus
internal import StoreEngine
internal import SyncEngine

extension UserAccount {
    // MARK: Signing in and out

    fileprivate func signIn(_ call: MethodCall, _ daemon: Daemon) throws {
        let url = try call.message.readString(atMost: TextBound.address)
        let options = try call.message.readOptions(SignInRequest.options)
        call.answer(on: daemon, holding: self) {
            let request = try SignInRequest(url, options) { isRenewal in !isRenewal }
            await self.attempts.stepEnd()
            if options.boolean("keep-last-key", default: false) {
                try self.keys.checkMayLeave(for: url, isReachable: self.sync.lastError == nil)
            }
            var signIn = SignIn(self, request)
            return try await signIn.run()
        } reply: {
            try $0.append($1)
        }
    }

    fileprivate func signOut(_ call: MethodCall, _ daemon: Daemon) throws {
        let options = try call.message.readOptions([
            "keep-values": "b", "keep-pending": "b", "keep-last-key": "b", "only-attempt": "b", "only-check": "b",
        ])
        let signOut = SignOut(
            account: self, keepsValues: options.boolean("keep-values", default: true),
            keepsPending: options.boolean("keep-pending", default: false),
            keepsLastKey: options.boolean("keep-last-key", default: false))
        call.answer(on: daemon, holding: self) {
            if options.boolean("only-attempt", default: false) { return self.attempts.endLatest() }
            try signOut.check()
            if !options.boolean("only-check", default: false) { try await signOut.run() }
        }
    }

    fileprivate func syncNow(_ call: MethodCall, _ daemon: Daemon) throws {
        let verifies = try call.message.readFlags(0x1) != 0
        guard sync.isSignedIn else { throw Self.notSignedIn }
        let isApp = daemon.clients.client(call.peer).isSandboxed
        if verifies, isApp { throw BusError.accessDenied("A sandboxed app can't have uploads read back.") }
        call.answer(on: daemon, holding: self) {
            if verifies {
                try await self.sync.syncAndVerify(for: .program)
            } else {
                try await self.sync.syncNow(for: isApp ? .app : .program)
            }
        }
    }

    fileprivate func checkBackend(_ call: MethodCall, _ daemon: Daemon) throws {
        let url = try call.message.readString(atMost: TextBound.address)
        let options = try call.message.readOptions(SignInRequest.options.merging(["sign-in": "b"]) { $1 })
        call.answer(on: daemon, holding: self) {
            let triesSignIn = options.boolean("sign-in", default: false)
            let request = try SignInRequest(url, options) { isRenewal in triesSignIn && !isRenewal }
            await self.attempts.stepEnd()
            var check = RemoteCheck(account: self, request: request, triesSignIn: triesSignIn)
            return try await check.run()
        } reply: { reply, checks in
            try reply.container("a", "a{sv}") {
                for check in checks {
                    try reply.appendDictionary {
                        try reply.append(entry: "step", text: check.step)
                        try reply.append(entry: "ok", .boolean(check.isPassed))
                        if check.isDoubtful { try reply.append(entry: "doubtful", .boolean(true)) }
                        let error = check.code.map { RemoteError($0, check.detail, reason: check.reason) }
                        try reply.append(entry: "detail", text: error?.advised ?? check.detail)
                        if let error { try reply.append(entry: "error", text: BusError(remote: error).name) }
                        if let reason = error?.reason { try reply.append(entry: "reason", text: reason.wireName) }
                    }
                }
            }
        }
    }

    // MARK: Encryption

    fileprivate func getRecoveryPhrase(_ call: MethodCall) throws {
        let marksShown = try call.message.readFlags(0x1) & 0x1 != 0
        let phrase = try keys.recoveryPhrase(marksShown: marksShown)
        try call.reply { try $0.append(phrase) }
    }

    fileprivate func unlock(_ call: MethodCall, _ daemon: Daemon) throws {
        let phrase = try call.message.readString(atMost: TextBound.name)
        call.answer(on: daemon, holding: self) {
            await self.attempts.stepEnd()
            try await OtherKeys(account: self).unlock(with: phrase)
        }
    }

    fileprivate func move(_ call: MethodCall, _ change: KeyChange, _ daemon: Daemon) throws {
        let options = try call.message.readOptions(["pass-over-unread": "b"])
        call.answer(on: daemon, holding: self) {
            await self.attempts.stepEnd()
            try await self.move.make(change, passingOverUnread: options.boolean("pass-over-unread", default: false))
        }
    }

    // MARK: Pausing and resolving

    fileprivate func resolve(_ call: MethodCall, _ daemon: Daemon) throws {
        guard let side = Resolution.Side(rawValue: try call.message.readString(atMost: TextBound.name)) else {
            throw BusError.invalidArguments("The side is \"local\" or \"remote\".")
        }
        call.answer(on: daemon, holding: self) {
            await self.attempts.stepEnd()
            try await Resolution(account: self, side: side).run()
        }
    }

    fileprivate func setPaused(_ call: MethodCall, _ daemon: Daemon) throws {
        let isPaused = try call.message.readBool()
        call.answer(on: daemon, holding: self) { try await self.setPaused(isPaused) }
    }

    fileprivate func setStoreSynchronized(_ call: MethodCall, _ daemon: Daemon) throws {
        let (identifier, isOn) = (try call.message.readString(atMost: TextBound.name), try call.message.readBool())
        let user = try daemon.users.user(uid)
        guard Manifest.isName(identifier),
            try user.manifests.declares(identifier) || user.storeIdentifiers().contains(identifier)
        else { throw BusError.store(.noSuchStore, "There is no store \"\(identifier)\".") }
        try user.recovery.retrying { try user.database.synchronize(store: identifier, isOn) }
        if isOn {
            sync.noteHint()
            sync.noteLocalChange()
        }
        try call.reply()
    }

    // MARK: Devices

    fileprivate func listDevices(_ call: MethodCall) throws {
        let devices = try sync.listDevices().sorted { ($0.name, $0.identifier) < ($1.name, $1.identifier) }
        try call.reply { reply in
            try reply.container("a", "a{sv}") {
                for device in devices { try append(device, to: reply) }
            }
        }
    }

    private func append(_ device: AccountDevice, to reply: Message) throws {
        try reply.appendDictionary {
            try reply.append(entry: "identifier", text: device.identifier)
            try reply.append(entry: "name", text: device.name)
            try reply.container("e", "sv") {
                try reply.append("last-seen-usec")
                try reply.container("v", "t") { try reply.append(device.lastSeen) }
            }
            let isThis = device.identifier == deviceIdentifier
            try reply.append(entry: "this", .boolean(isThis))
            guard isThis else { return }
            if let present = move.present { try reply.append(entry: "moves", text: present.rawValue) }
            // Of an account whose file is damaged, nothing is known.
            if (try? saved.read())?.isPaused == true { try reply.append(entry: "paused", .boolean(true)) }
        }
    }

    fileprivate func renameDevice(_ call: MethodCall, _ daemon: Daemon) throws {
        let identifier = try call.message.readString(atMost: TextBound.name)
        let name = try call.message.readString(atMost: TextBound.name)
        try RemoteDevice.check(name: name)
        guard sync.isSignedIn else { throw Self.notSignedIn }
        guard try sync.rename(device: identifier, to: name) else { throw Self.noSuchDevice }
        call.answer(on: daemon, holding: self) { await self.renewName() }
    }

    fileprivate func forgetDevice(_ call: MethodCall) throws {
        let identifier = try call.message.readString(atMost: TextBound.name)
        guard sync.isSignedIn else { throw Self.notSignedIn }
        guard identifier != deviceIdentifier else {
            throw BusError.invalidArguments("A device can't forget itself. Sign out instead.")
        }
        guard try sync.forget(device: identifier) else { throw Self.noSuchDevice }
        try call.reply()
    }

    private static let noSuchDevice = BusError.invalidArguments("The account has no such device; see ListDevices.")

    // MARK: Usage

    fileprivate func getUsage(_ call: MethodCall, _ daemon: Daemon) throws {
        call.answer(on: daemon, holding: self) {
            (try self.database.space.size(), try await self.history.bytes(.counting, of: self))
        } reply: { [bound = daemon.configuration.bounds.databaseBytes] reply, usage in
            try reply.appendDictionary {
                try reply.append(option: "database-bytes", UInt64(usage.0))
                try reply.append(option: "database-bytes-limit", UInt64(bound))
                try reply.append(option: "history-bytes", UInt64(usage.1))
            }
        }
    }

    fileprivate func trimHistory(_ call: MethodCall, _ daemon: Daemon) throws {
        _ = try call.message.readFlags()
        call.answer(on: daemon, holding: self) {
            try await self.history.bytes(.removing, of: self)
        } reply: {
            try $0.append(UInt64($1))
        }
    }

    // MARK: Subscribing

    fileprivate func subscribe(_ call: MethodCall, _ daemon: Daemon) throws {
        _ = try call.message.readFlags()
        let client = daemon.clients.client(call.peer)
        let path = call.message.path ?? path
        if !notices.isSubscribed(client, at: path) { try daemon.clients.checkSubscriptions(of: client) }
        daemon.clients.hold(self, at: path, client, call.peer)
        notices.subscribe(client, call.peer, at: path)
        try call.reply()
    }

    fileprivate func unsubscribe(_ call: MethodCall, _ daemon: Daemon) throws {
        notices.unsubscribe(daemon.clients.client(call.peer), at: call.message.path ?? path)
        try call.reply()
    }

    // MARK: The table

    /// Every method, signal and property of the interface, in the order of its XML.
    static func interface(_ daemon: Daemon) -> Interface<UserAccount> {
        Interface(
            BusNames.accountInterface,
            [
                .method(
                    "SignIn", in: ["backend_url": "s", "options": "a{sv}"], out: ["account_identifier": "s"],
                    sensitive: true, by: .unsandboxed, on: daemon
                ) { try $0.signIn($1, daemon) },
                .method("SignOut", in: ["options": "a{sv}"], by: .unsandboxed, on: daemon) {
                    try $0.signOut($1, daemon)
                },
                .method(
                    "GetRecoveryPhrase", in: ["flags": "t"], out: ["recovery_phrase": "s"], sensitive: true,
                    by: .unsandboxed, on: daemon
                ) { try $0.getRecoveryPhrase($1) },
                .method("Encrypt", in: ["options": "a{sv}"], by: .unsandboxed, on: daemon) {
                    try $0.move($1, .encryption, daemon)
                },
                .method("ReplaceKey", in: ["options": "a{sv}"], by: .unsandboxed, on: daemon) {
                    try $0.move($1, .replacement, daemon)
                },
                .method("Unlock", in: ["recovery_phrase": "s"], sensitive: true, by: .unsandboxed, on: daemon) {
                    try $0.unlock($1, daemon)
                },
                .method("SyncNow", in: ["flags": "t"], by: .everybody, on: daemon) { try $0.syncNow($1, daemon) },
                .method("Resolve", in: ["side": "s"], by: .unsandboxed, on: daemon) { try $0.resolve($1, daemon) },
                .method("SetPaused", in: ["paused": "b"], by: .unsandboxed, on: daemon) {
                    try $0.setPaused($1, daemon)
                },
                .method("SetStoreSynchronized", in: ["identifier": "s", "on": "b"], by: .unsandboxed, on: daemon) {
                    try $0.setStoreSynchronized($1, daemon)
                },
                .method("ListDevices", out: ["devices": "aa{sv}"], by: .unsandboxed, on: daemon) {
                    try $0.listDevices($1)
                },
                .method("RenameDevice", in: ["identifier": "s", "name": "s"], by: .unsandboxed, on: daemon) {
                    try $0.renameDevice($1, daemon)
                },
                .method("ForgetDevice", in: ["identifier": "s"], by: .unsandboxed, on: daemon) {
                    try $0.forgetDevice($1)
                },
                .method(
                    "CheckBackend", in: ["backend_url": "s", "options": "a{sv}"], out: ["steps": "aa{sv}"],
                    sensitive: true, by: .unsandboxed, on: daemon
                ) { try $0.checkBackend($1, daemon) },
                .method("GetUsage", out: ["usage": "a{sv}"], by: .unsandboxed, on: daemon) {
                    try $0.getUsage($1, daemon)
                },
                .method("TrimHistory", in: ["flags": "t"], out: ["freed": "t"], by: .unsandboxed, on: daemon) {
                    try $0.trimHistory($1, daemon)
                },
                .method("Subscribe", in: ["flags": "t"], by: .everybody, on: daemon) { try $0.subscribe($1, daemon) },
                .method("Unsubscribe", by: .everybody, on: daemon) { try $0.unsubscribe($1, daemon) },
                .signal("AccountChanged", ["state": "s", "info": "a{sv}"]),
                .property("State", "s", changes: .silently, to: .everybody, on: daemon) { account, message in
                    try message.append(account.sync.state.status.rawValue)
                },
                .property("Backend", "s", changes: .silently, to: .unsandboxed, on: daemon) { account, message in
                    try message.append(text: account.url)
                },
                .property("AccountIdentifier", "s", changes: .silently, to: .everybody, on: daemon) {
                    account, message in
                    try message.append(text: account.accountIdentifier)
                },
                .property("DeviceIdentifier", "s", changes: .silently, to: .everybody, on: daemon) { account, message in
                    try message.append(text: account.deviceIdentifier)
                },
                .property("DeviceName", "s", changes: .silently, to: .everybody, on: daemon) { account, message in
                    try message.append(text: account.sync.devices.own.name)
                },
                .property("InitialSyncDone", "b", changes: .silently, to: .everybody, on: daemon) { account, message in
                    try message.append(account.isDownloaded)
                },
                .property("Encrypted", "b", changes: .silently, to: .everybody, on: daemon) { account, message in
                    try message.append(account.isEncrypted)
                },
                .property("PhraseUnconfirmed", "b", changes: .silently, to: .everybody, on: daemon) {
                    account, message in
                    try message.append(account.isEncrypted && account.keys.isPhraseUnconfirmed)
                },
                .property("ShowsFormerAccount", "b", changes: .silently, to: .everybody, on: daemon) {
                    account, message in
                    try message.append(account.showsFormerAccount)
                },
                .property("PendingChanges", "u", changes: .silently, to: .everybody, on: daemon) { account, message in
                    let user = try daemon.users.user(account.uid)
                    let count = try user.recovery.retrying { try user.account.pendingChanges() }
                    try message.append(UInt32(clamping: count))
                },
                .property("ExcludedChanges", "u", changes: .silently, to: .unsandboxed, on: daemon) {
                    account, message in
                    let user = try daemon.users.user(account.uid)
                    let count = try user.recovery.retrying { try user.account.excludedChanges() }
                    try message.append(UInt32(clamping: count))
                },
                .property("LastPullUSec", "t", changes: .silently, to: .everybody, on: daemon) { account, message in
                    try message.append(account.sync.lastPull)
                },
                .property("LastPushUSec", "t", changes: .silently, to: .everybody, on: daemon) { account, message in
                    try message.append(account.sync.lastPush)
                },
                .property("LastErrorName", "s", changes: .silently, to: .everybody, on: daemon) { account, message in
                    try message.append(account.sync.lastError.map { BusError(remote: $0).name } ?? "")
                },
                .property("LastErrorMessage", "s", changes: .silently, on: daemon) { account, message, client in
                    let told = account.sync.lastError.map { AccountNotices.told($0, to: client).message }
                    try message.append(text: told ?? "")
                },
                .property("LastErrorReason", "s", changes: .silently, to: .everybody, on: daemon) { account, message in
                    try message.append(account.sync.lastError?.reason?.wireName ?? "")
                },
                .property("DefaultBackend", "s", changes: .silently, to: .unsandboxed, on: daemon) { account, message in
                    try message.append(account.remotes.defaultAddress ?? "")
                },
                .property("FreeBytes", "t", changes: .silently, to: .unsandboxed, on: daemon) { account, message in
                    try message.append(UInt64(max(0, try daemon.users.user(account.uid).room.onDisk())))
                },
                .property("DatabasesSetAside", "as", changes: .silently, to: .unsandboxed, on: daemon) {
                    account, message in
                    let directory = UserDirectory(of: account.uid, in: daemon.configuration.stateDirectory)
                    try message.append(strings: directory.databasesSetAside)
                },
                .property("NextAttemptUSec", "t", changes: .silently, to: .everybody, on: daemon) { account, message in
                    try message.append(account.nextAttempt)
                },
                .property("NextSyncUSec", "t", changes: .silently, to: .everybody, on: daemon) { account, message in
                    try message.append(account.nextCycle)
                },
                .property("SlowedBy", "as", changes: .silently, to: .everybody, on: daemon) { account, message in
                    try message.append(strings: account.savings)
                },
            ])
    }
}

extension RemoteDevice {
    /// Throws unless a device may have a name.
    static func check(name: String) throws(BusError) {
        guard isName(name) else {
            throw .invalidArguments("A device's name has 1 to 255 bytes, and only characters that can be shown.")
        }
    }
}
