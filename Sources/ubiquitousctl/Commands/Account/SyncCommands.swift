// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import UbiquitousStore

/// `account sync`.
struct SyncCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "sync", abstract: "Syncs all stores now, and ends when that is done.")

    @OptionGroup var service: ServiceOptions

    func perform() async throws {
        let account = try await service.account()
        try await Progress.showing("Syncing") {
            try await account.unlessPaused { try await account.syncNow(timeout: Patience.remote) }
        }
    }
}

/// `account pause`.
struct PauseCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "pause", abstract: "Has nothing synced until \"account resume\".")

    @OptionGroup var options: AccountOptions

    func perform() async throws {
        try await options.make("Pausing") { _, account in
            account.isPausedByUser ? nil : "pause sync"
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
        try await options.make("Resuming") { _, account in
            if account.isReset, let error = account.lastError { throw error }
            return account.state == "paused" ? "resume sync" : nil
        } _: {
            try await $0.setPaused(false)
        }
    }
}

/// `account resolve`.
struct ResolveCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "resolve",
        abstract: "Says which side is right, after the remote was emptied or damaged, or is another account's.",
        discussion: """
            Until then sync is paused: it could be a mistake, such as a folder that isn't mounted. Where somebody who can \
            write to the remote has put another key into an encrypted account, \"local\" goes on under this device's. Where \
            parts of the account never arrive for the first time, \"local\" goes on without them. \
            First all stores are synced, to find out whether there is anything to decide; ends with 4 while that is impossible.
            """)

    @OptionGroup var options: AccountOptions

    @Argument(help: "local: this device's values are right. remote: the remote's are.")
    var side: AccountObject.Side

    func perform() async throws {
        var isAsked = false
        try await options.make("Resolving") { object, account in
            guard account.state != "signed-out" else { throw AccountOptions.notSignedIn }
            let account = try await object.synced()
            let isForThisDevice = account.needsKey || account.isDamaged || account.lacksParts
            if isForThisDevice, side == .remote, let error = account.lastError { throw error }
            isAsked = account.isReset || isForThisDevice
            if account.lacksParts { return "continue without what has not arrived" }
            if account.isReset || account.isDamaged { return "take the \(side.rawValue) values for right" }
            return account.needsKey ? "reject other keys than this device's" : nil
        } _: {
            try await $0.resolve(side, timeout: Patience.remote)
        }
        if !isAsked { Output.remark("There is nothing to resolve: the account syncs") }
    }
}

extension AccountObject.Side: ExpressibleByArgument {}
