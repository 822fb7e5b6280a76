// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import SDBus
internal import StoreBus
internal import UbiquitousStore

/// `account sync`.
struct SyncCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "sync", abstract: "Syncs all stores now, and waits until that is done.")

    @OptionGroup var service: ServiceOptions

    func perform() async throws {
        let account = try await service.account()
        try await Progress.showing("Syncing") {
            try await account.unlessPaused { try await account.syncNow(timeout: Patience.remote) }
        }
        try await account.remarkOnUnread()
    }
}

/// `account pause`.
struct PauseCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "pause", abstract: "Pauses sync until \"account resume\".")

    @OptionGroup var options: AccountOptions

    func perform() async throws {
        try await options.make("Pausing") { object, account in
            guard account.isSignedIn else { throw AccountOptions.notSignedIn }
            return try await object.isPaused(account) ? nil : "pause sync"
        } _: {
            try await $0.setPaused(true)
        }
    }
}

/// `account resume`.
struct ResumeCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume", abstract: "Ends a pause.")

    @OptionGroup var options: AccountOptions

    func perform() async throws {
        try await options.make("Resuming") { object, account in
            guard account.isSignedIn else { throw AccountOptions.notSignedIn }
            if account.isReset, let error = account.lastError { throw error }
            if account.state == .paused { return "resume sync" }
            return try await object.isPaused(account) ? "resume sync" : nil
        } _: {
            try await $0.setPaused(false)
        }
    }
}

/// `account resolve`.
struct ResolveCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "resolve",
        abstract: "Decides which side is right if the remote was emptied, damaged or holds another account.",
        discussion: """
            Sync is paused until then, because the cause may be a mistake, such as a folder that isn't mounted. If \
            somebody who can write to the remote has put another key into an encrypted account, "local" continues \
            under this device's key. If parts of the account never arrive on a new device, "local" continues without \
            them. The command first syncs all stores, to find out whether there is anything to decide; if it can't, it \
            exits with 4.

            With "remote", values that only this device has leave their stores, all of them if the remote was emptied. \
            They stay in the history of their keys on this device ("ubiquitousctl history", "ubiquitousctl restore"). \
            At a terminal, the command asks first. An account that is not encrypted doesn't take the place of an \
            encrypted one, nor does an encrypted account under a key that it has left.
            """)

    @OptionGroup var options: AccountOptions

    @Argument(help: "local: this device's values are right. remote: the remote's are.")
    var side: AccountObject.Side

    func perform() async throws {
        var (isAsked, isResolved) = (false, false)
        try await options.make("Resolving") { object, account in
            guard account.isSignedIn else { throw AccountOptions.notSignedIn }
            do {
                if let plan = try plan(try await object.synced()) {
                    isAsked = true
                    if side == .remote, !options.change.json { Output.remark(Self.effect) }
                    return plan
                }
                isResolved = try await resolvesUnnoticedDamage(of: object)
            } catch let error as UbiquitousStoreError where error.code == .backendUnavailable {
                // The account's folder may be gone from a server that can be reached.
                if side == .local, options.change.check, try await object.properties().isFolderMissing {
                    isAsked = true
                    return "make the account's folder again"
                }
                isResolved = try await resolvesUnnoticedDamage(of: object)
                if !isResolved { throw error }
            }
            return isResolved ? "write the account's marker again" : nil
        } _: {
            if isResolved { return }
            if side == .remote, isatty(STDIN_FILENO) == 1, !options.change.json {
                let question = Question("Take the remote's values? [y/N]", default: false, advice: "Answer y or n.")
                guard try question.isYes() else { throw Failure(.refused, "Nothing was changed.") }
            }
            try await resolve($0)
        }
        if !isAsked, !isResolved { Output.remark("There is nothing to resolve: the account syncs") }
    }

    private static let effect: Sentence = """
        With "remote", values that only this device has leave their stores, and stay in the history of their keys
        """

    /// Resolves. If the remote's account is right and encrypted, that is decided, and this device waits for its phrase.
    @BusActor
    private func resolve(_ account: AccountObject) async throws {
        do { try await account.resolve(side, timeout: Patience.remote) } catch let error as UbiquitousStoreError
            where error.code == .keyNeeded && side == .remote
        {
            Output.remark(
                """
                The account there is encrypted, and this device does not have its key. Enter its recovery phrase with \
                "ubiquitousctl account unlock"
                """)
        }
    }

    /// Returns what resolving does to an account, in words; `nil` if nothing is known that asks for it.
    private func plan(_ account: AccountDescription) throws -> String? {
        if account.isUnreadable, let error = account.lastError { throw error }
        let isForThisDevice = account.needsKey || account.isDamaged || account.lacksParts
        if isForThisDevice && side == .remote || account.isKeyReplaced, let error = account.lastError { throw error }
        if account.lacksParts { return "continue without what has not arrived" }
        if account.isReset || account.isDamaged { return "take the \(side.rawValue) values for right" }
        return account.needsKey ? "reject other keys than this device's" : nil
    }

    /// Resolves in favour of this device if the service finds damage that sync has not noticed. Another device may have
    /// found it on signing in, and sent its user here.
    /// - Returns: whether it found any.
    @BusActor
    private func resolvesUnnoticedDamage(of account: AccountObject) async throws -> Bool {
        if side == .remote { return false }
        if options.change.check { return try await isDamaged(account) }
        do { try await account.resolve(side, timeout: Patience.remote) } catch let error as UbiquitousStoreError {
            switch error.code {
            case .conflict: return false
            // The service has noticed it just now.
            case .remoteReset: try await account.resolve(side, timeout: Patience.remote)
            default: throw error
            }
        }
        return true
    }

    /// Whether a test of the account's remote finds damage.
    @BusActor
    private func isDamaged(_ account: AccountObject) async throws -> Bool {
        var request = SignInOptions()
        request.renews = true
        let steps = try await AccountOptions.steps(account, try await account.properties().backend, request)
        return steps.contains { [.corrupt, .remoteReset].contains($0.code) }
    }
}

extension AccountObject.Side: ExpressibleByArgument {}
