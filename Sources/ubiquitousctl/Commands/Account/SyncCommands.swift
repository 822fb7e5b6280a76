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
            if let error = account.lastError, error.code == .remoteReset { throw error }
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
        abstract: "Says which side is right, after the remote was emptied or is another account's.",
        discussion: """
            Until then sync is paused: it could be a mistake, such as a folder that isn't mounted. Where somebody who can \
            write to the remote has put another key into an encrypted account, \"local\" goes on under this device's.
            """)

    @OptionGroup var options: AccountOptions

    @Argument(help: "local: this device's values are right. remote: the remote's are.")
    var side: AccountObject.Side

    func perform() async throws {
        try await options.make("Resolving") { _, account in
            guard account.state != "signed-out" else { throw AccountOptions.notSignedIn }
            return switch account.lastError?.code {
            case .remoteReset: "take the \(side.rawValue) values for right"
            case .keyNeeded where side == .local: "reject other keys than this device's"
            default: nil
            }
        } _: {
            try await $0.resolve(side, timeout: Patience.remote)
        }
    }
}

extension AccountObject.Side: ExpressibleByArgument {}
