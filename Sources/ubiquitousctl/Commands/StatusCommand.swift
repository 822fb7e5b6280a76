// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import PropertyList
internal import SDBus
internal import StoreBus
internal import UbiquitousStore

/// `status`.
struct StatusCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Shows the account, and how its sync is going.")

    @OptionGroup var service: ServiceOptions

    @Flag(help: "The accounts of every user who has data on this device; for root.")
    var everybody = false

    @Flag(help: "Print an object of JSON, with --everybody an array.")
    var json = false

    func validate() throws { try service.check(everybody: everybody) }

    func perform() async throws {
        if everybody { return try await showEverybody() }
        let uid = try service.uid()
        let (account, move, errors) = try await Progress.showing("Waiting for the service") {
            let connection = try await service.connect()
            let object = connection.account(ofUser: uid)
            let account = try await object.properties()
            let move = account.isSignedIn ? try await object.move() : ""
            return (account, move, try await connection.manager.properties().settingsErrors)
        }
        if json {
            return Output.print(
                json: account.json(["settings-errors": .strings(errors), "move": .string(Text(move))]))
        }
        let style = Style(for: STDOUT_FILENO)
        let settings = errors.map { ("Settings", style.red(Output.printable($0))) }
        let damage = account.damage.map { [("Damage", style.red(Output.printable($0)))] } ?? []
        let moves = move.isEmpty ? [] : [("Moving", style.yellow("to a new key; goes on after each sync"))]
        for (name, text) in account.lines + moves + damage + settings {
            let padding = String(repeating: " ", count: 14 - name.count)
            Output.print(style.dim(name + padding) + text)
        }
    }

    @BusActor
    private func showEverybody() async throws {
        let everybody = try await Progress.showing("Waiting for the service") {
            try await Everybody(try await service.connect())
        }
        if json {
            Output.print(
                json: .array(
                    everybody.users.map {
                        $0.account.json([
                            "uid": .integer(Int64($0.uid)), "user": .string(Text($0.name)),
                            "move": .string(Text($0.move)),
                        ])
                    }))
        } else {
            Self.show(everybody.users)
        }
        if !everybody.unreadable.isEmpty { throw ReportedFailure(outcome: .refused) }
    }

    private static func show(_ users: [Everybody.User]) {
        let style = Style(for: STDOUT_FILENO)
        for user in users {
            let error = user.account.lastError.map { Output.printableWord($0.message) } ?? ""
            Output.print(
                lines: [style.bold(Output.printableWord(user.name)), user.account.colouredState]
                    + [Output.printableWord(user.account.backend), error]
                    + [user.move.isEmpty ? "" : style.yellow("moving to a new key"), user.account.damage ?? ""]
                    .filter { !$0.isEmpty })
        }
    }
}

extension AccountDescription {
    private var encryption: String {
        if needsKey { return "yes, and its key is not on this device" }
        if isPhraseUnconfirmed {
            return "yes, but nobody has confirmed the recovery phrase: \"ubiquitousctl account phrase\" shows it"
        }
        if isUnreadable, !isEncrypted { return "unknown: the account's file can't be read" }
        return isEncrypted ? "yes" : "no: anyone with access to the remote can read the values"
    }

    /// What users want to know, in the order of importance.
    fileprivate var lines: [(String, String)] {
        let style = Style(for: STDOUT_FILENO)
        var lines = [("State", colouredState)]
        if let lastError {
            lines.append(("Error", Output.printable(Failure(lastError).english().replacing("\n", with: " "))))
        }
        if !backend.isEmpty { lines.append(("Remote", Output.printable(backend))) }
        if !accountIdentifier.isEmpty { lines.append(("Account", accountIdentifier)) }
        if isSignedIn {
            lines.append(("Encrypted", encryption))
        }
        let identifier = style.dim(Output.printableWord(deviceIdentifier))
        lines.append(("This device", "\(Output.printableWord(deviceName)) \(identifier)"))
        if !isSignedIn { return lines }
        func changes(_ count: Int) -> String { count == 1 ? "1 change" : "\(count) changes" }
        lines.append(("To upload", changes(pendingChanges)))
        if excludedChanges > 0 {
            let place = "in stores that are excluded (\"ubiquitousctl stores sync\")"
            lines.append(("Not synced", "\(changes(excludedChanges)) \(place)"))
        }
        lines.append(("Last poll", TimeText.local(lastPull)))
        // The service has forgotten what it uploaded before, because all of it has to be uploaded again.
        let isGone = isReset && lastPush == 0
        lines.append(("Uploaded", isGone ? "not since the account was gone" : TimeText.local(lastPush)))
        if nextAttempt > 0 { lines.append(("Next attempt", TimeText.local(nextAttempt))) }
        if nextAttempt == 0, nextSync > 0 { lines.append(("Next sync", TimeText.local(nextSync))) }
        if !slowedBy.isEmpty { lines.append(("Slowed", slowness)) }
        return lines
    }

    /// Why there are fewer cycles than usual, for users.
    private var slowness: String {
        let reasons = slowedBy.map { reason in
            switch reason {
            case "metered-network": "the network is metered"
            case "power-saver": "the machine saves power"
            default: Output.printableWord(reason)
            }
        }
        return reasons.joined(separator: ", and ") + "; \"ubiquitousctl account sync\" syncs at once"
    }

    /// A sentence for users if databases were set aside; `nil` if none were.
    fileprivate var damage: String? {
        if databasesSetAside.isEmpty { return nil }
        let names = databasesSetAside.map(Output.printableWord).joined(separator: ", ")
        return "a damaged database was set aside (\(names)); see \"ubiquitousctl doctor\""
    }

    fileprivate var colouredState: String {
        let style = Style(for: STDOUT_FILENO)
        let word = state.rawValue
        return switch state {
        case .idle, .syncing: style.green(word)
        case .authFailed, .error: style.red(word)
        case .signedOut: word
        default: style.yellow(word)
        }
    }

    fileprivate func json(_ others: [Text: Value]) -> Value {
        var object: [Text: Value] = [
            "state": .string(Text(state.rawValue)), "backend": .string(Text(backend)),
            "account": .string(Text(accountIdentifier)), "device": .string(Text(deviceIdentifier)),
            "device-name": .string(Text(deviceName)), "initial-sync-done": .boolean(isInitialSyncDone),
            "phrase-unconfirmed": .boolean(isPhraseUnconfirmed), "pending-changes": .integer(Int64(pendingChanges)),
            "excluded-changes": .integer(Int64(excludedChanges)),
        ]
        if isEncrypted || !isUnreadable { object["encrypted"] = .boolean(isEncrypted) }
        object["last-pull"] = TimeText.value(lastPull)
        object["last-push"] = TimeText.value(lastPush)
        object["next-attempt"] = TimeText.value(nextAttempt)
        object["next-sync"] = TimeText.value(nextSync)
        object["slowed-by"] = .strings(slowedBy)
        object["databases-set-aside"] = .strings(databasesSetAside)
        object["error"] = lastError.map {
            ["code": .string(Text($0.code.description)), "message": .string(Text($0.message))]
        }
        return .dictionary(object.merging(others) { $1 })
    }
}
