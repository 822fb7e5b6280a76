// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import PropertyList
internal import UbiquitousStore

/// `synchronize`.
struct SynchronizeCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "synchronize",
        abstract: "Waits until a store is on disk, and starts its upload.",
        discussion: """
            Without --wait, it returns when everything is on disk, where it survives a power cut, and says whether \
            changes have to stay on this device for now. With --wait, it returns when the changes are uploaded and the \
            remote's changes have arrived.
            """)

    @OptionGroup var options: StoreOptions

    @Flag(help: "Wait for the remote.")
    var wait = false

    @Option(help: ArgumentHelp("How long to wait for the remote (default: 300).", valueName: "seconds"))
    var timeout: Int?

    @Flag(help: "Print an object of JSON.")
    var json = false

    func validate() throws {
        guard wait || timeout == nil else { throw ValidationError(localized("--timeout goes with --wait.")) }
        guard (1...86_400).contains(timeout ?? 1) else {
            throw ValidationError(localized("--timeout takes 1 to 86400 seconds."))
        }
    }

    func perform() async throws {
        let uid = try options.service.uid()
        let timeout = timeout ?? 300
        let accepted = try await options.withOpenStore { store in
            let account = store.connection.account(ofUser: uid)
            return try await Progress.showing(wait ? "Synchronizing" : "Writing to disk") {
                do {
                    let accepted = try await account.unlessPaused {
                        try await store.synchronize(waitingForRemote: wait, timeout: .seconds(wait ? timeout : 120))
                    }
                    if wait { try await account.remarkOnUnread() }
                    return accepted
                } catch let error as UbiquitousStoreError where error.code == .timedOut && wait {
                    throw Failure(
                        .unreachable, "This takes longer than \(timeout) s.",
                        advice: "What was written is kept, and will be uploaded; see \"ubiquitousctl status\".")
                }
            }
        }
        if json { return Output.print(json: ["accepted": .boolean(accepted)]) }
        if !accepted {
            Output.remark("Everything is on disk, and stays on this device for now; see \"ubiquitousctl status\"")
        }
    }
}
