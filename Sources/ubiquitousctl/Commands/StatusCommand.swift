// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import PropertyList
internal import UbiquitousStore

/// `status`.
struct StatusCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Shows the account, and how its sync is going.")

    @OptionGroup var service: ServiceOptions

    @Flag(help: "Print an object of JSON.")
    var json = false

    func perform() async throws {
        let account = try await Progress.showing("Waiting for the service") {
            try await service.account().properties()
        }
        if json { return Output.print(json: account.json) }
        for (name, text) in account.lines {
            let padding = String(repeating: " ", count: 14 - name.count)
            Output.print(Style(for: STDOUT_FILENO).dim(name + padding) + text)
        }
    }
}

extension AccountDescription {
    /// What a person wants to know, in the order of importance.
    fileprivate var lines: [(String, String)] {
        let style = Style(for: STDOUT_FILENO)
        var lines = [("State", colour(style, state))]
        if let lastError {
            lines.append(("Error", Output.printable(Failure(lastError).description.replacing("\n", with: " "))))
        }
        if !backend.isEmpty { lines.append(("Remote", Output.printable(backend))) }
        if !accountIdentifier.isEmpty { lines.append(("Account", accountIdentifier)) }
        lines.append(("This device", "\(Output.printableWord(deviceName)) \(style.dim(deviceIdentifier))"))
        if state == "signed-out" { return lines }
        lines.append(("To upload", pendingChanges == 1 ? "1 change" : "\(pendingChanges) changes"))
        lines.append(("Downloaded", TimeText.local(lastPull)))
        lines.append(("Uploaded", TimeText.local(lastPush)))
        if nextAttempt > 0 { lines.append(("Next attempt", TimeText.local(nextAttempt))) }
        return lines
    }

    private func colour(_ style: Style, _ text: String) -> String {
        switch state {
        case "idle", "syncing": style.green(text)
        case "auth-failed", "error": style.red(text)
        case "signed-out": text
        default: style.yellow(text)
        }
    }

    fileprivate var json: Value {
        var object: [Text: Value] = [
            "state": .string(Text(state)), "backend": .string(Text(backend)),
            "account": .string(Text(accountIdentifier)), "device": .string(Text(deviceIdentifier)),
            "device-name": .string(Text(deviceName)), "initial-sync-done": .boolean(isInitialSyncDone),
            "pending-changes": .integer(Int64(pendingChanges)),
        ]
        object["last-pull"] = TimeText.value(lastPull)
        object["last-push"] = TimeText.value(lastPush)
        object["next-attempt"] = TimeText.value(nextAttempt)
        object["error"] = lastError.map {
            ["code": .string(Text($0.code.description)), "message": .string(Text($0.message))]
        }
        return .dictionary(object)
    }
}
