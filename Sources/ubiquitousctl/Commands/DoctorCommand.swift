// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import PropertyList
internal import SDBus
internal import StoreBus
internal import UbiquitousStore

/// `doctor`.
struct DoctorCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Finds problems with the bus, the service, the account and a remote.",
        discussion: """
            Given a URL, it tests that remote step by step, and undoes what it changes there; without one, it tests \
            the account's remote. It takes at most 20 seconds for that, and a minute for a URL. At the account's own \
            address, it also tries the account's credentials and key. Exits with 0 if all is well, 4 if the service \
            can't be reached, and 3 for any other problem.
            """)

    @OptionGroup var service: ServiceOptions
    @OptionGroup var credentials: Credentials

    @Option(
        help: ArgumentHelp(
            "Try the recovery phrase in a file on the encrypted account there; - is standard input.",
            valueName: "file"),
        completion: .file())
    var phraseFile: String?

    @Flag(help: "Print an array of JSON.")
    var json = false

    @Argument(help: "A remote to try, as for \"account sign-in\".")
    var url: String?

    func validate() throws {
        if let url { try Credentials.check(url) }
        if phraseFile != nil && url == nil {
            throw ValidationError(localized("--phrase-file is for trying a remote: name its URL."))
        }
    }

    func perform() async throws {
        _ = try service.uid()
        let request = try await request()
        var findings: [Finding] = []
        do {
            let connection = try await service.bus.connect()
            found(Finding("bus", "connected to \(service.bus.address.words)"), &findings)
            try await examine(connection, request, &findings)
        } catch {
            let failure = await Failure.explained(error)
            found(Finding(findings.isEmpty ? "bus" : "service", failure.english(), isPassed: false), &findings)
            try finish(findings, failure.outcome)
        }
        try finish(findings, .refused)
    }

    /// Returns the credentials for the named remote; `nil` if none is named.
    @BusActor
    private func request() async throws -> SignInOptions? {
        guard let url else { return nil }
        var request = try await credentials.options(for: url)
        request.recoveryPhrase = try phraseFile.map { try Phrase.read(from: $0) }
        return request
    }

    @BusActor
    private func examine(
        _ connection: ServiceConnection, _ request: SignInOptions?, _ findings: inout [Finding]
    ) async throws {
        let description = try await connection.manager.properties()
        found(Finding("service", "version \(description.version)"), &findings)
        for error in description.settingsErrors { found(Finding("settings", error, isPassed: false), &findings) }
        foundFiles(description.warnings, &findings)
        let caller = try await connection.manager.identify()
        if caller.engine == "unknown" {
            let problem = "the service can't tell what sandbox this program is in, and shows it no data"
            return found(Finding("identity", "\(problem)\nRun it outside of the sandbox.", isPassed: false), &findings)
        }
        found(Finding("identity", try await identity(connection, caller)), &findings)
        var account = connection.account(ofUser: try service.uid())
        var known = try await state(of: account)
        if known == nil, url != nil {
            // Trying an address needs the user's own connection, for which the service makes a place for data.
            account = try await service.connectAsUser().account(ofUser: try service.uid())
            known = try await account.properties()
        }
        guard let state = known else {
            let isUser = LocalUser.name(of: try service.uid()) != nil
            let reason = isUser ? "the user has no data on this device" : "this machine has no user of this uid"
            found(Finding("account", "none; \(reason)", isPassed: isUser), &findings)
            if geteuid() == 0 { try await foundSetAside(connection, &findings) }
            return
        }
        found(
            Finding(
                "account",
                state.state.rawValue + (state.lastError.map { ": \(words($0))" } ?? "")
                    + (state.isPausedByUser ? "; \"ubiquitousctl account resume\" ends the pause" : ""),
                isPassed: state.lastError == nil),
            &findings)
        // A sandboxed app isn't told how much space is left.
        if caller.engine == "host" { found(device(state), &findings) }
        if geteuid() == 0 { try await foundSetAside(connection, &findings) }
        guard let url, var request else { return try await examineRemote(of: state, account, &findings) }
        let own = state.isSignedIn && state.isAt(url) ? state : nil
        if own != nil { request.renews = true }
        do {
            let steps = try await Progress.showing("Trying \(url)") {
                try await account.check(url, request, timeout: Patience.remote)
            }
            for step in steps { found(Finding(step, isNamed: true, of: own), &findings) }
        } catch let error as UbiquitousStoreError where error.code == .invalidArguments && phraseFile != nil {
            found(Finding("key", error.message, isPassed: false), &findings)
        } catch let error as UbiquitousStoreError where error.code == .busy {
            found(Finding(untried: "remote", "the service is busy with another caller's check"), &findings)
        }
    }

    /// Reports files that are not in force. What to do follows the last of those that it is about.
    private func foundFiles(_ warnings: [String], _ findings: inout [Finding]) {
        // The service's words for files that it doesn't trust or can't read, and those for mistakes in them. A folder root
        // belongs to others.
        let files = warnings.map { $0.hasPrefix("FolderRoot=") ? "" : $0 }
        let lastUntrusted = files.lastIndex { file in
            ["Permission denied", "it is owned by", "others may write"].contains { file.contains($0) }
        }
        let lastRefused = files.lastIndex { $0.contains(" refused") }
        for (index, warning) in warnings.enumerated() {
            let advice: [String] = [
                index == lastUntrusted ? "A file needs the mode 644, its directory 755, and root as their owner." : nil,
                index == lastRefused ? Self.adviceOnMistakes : nil,
            ].compactMap(\.self)
            let rest = advice.isEmpty ? "" : "\n" + advice.joined(separator: " ")
            found(Finding("files", warning + rest, isPassed: false), &findings)
        }
    }

    private static let adviceOnMistakes = """
        "ubiquitousctl manifest check FILE" and "ubiquitousctl defaults managed check FILE" find mistakes in files. \
        Corrections take effect at once.
        """

    /// Returns the account's error in words. If the remote can't be reached, the advice would be to run this command.
    private func words(_ error: UbiquitousStoreError) -> String {
        Failure(error).english(advising: error.code != .backendUnavailable)
    }

    /// Tests the account's remote, unless the service itself doesn't use it now.
    @BusActor
    private func examineRemote(
        of state: AccountDescription, _ account: AccountObject, _ findings: inout [Finding]
    ) async throws {
        if !state.isSignedIn { return }
        let url = state.backend
        let command = "ubiquitousctl doctor \(Output.shellWord(url))"
        let further = "\"\(command)\" tries it anyway"
        if state.state == .paused { return found(Finding(untried: "remote", "sync is paused; \(further)"), &findings) }
        // Servers lock out clients that retry a wrong password.
        if state.lastError?.code == .backendAuthenticationFailed {
            return found(Finding(untried: "remote", "it refuses the credentials; \(further)"), &findings)
        }
        var request = SignInOptions()
        request.renews = true
        do {
            let steps = try await Progress.showing("Trying \(url)") {
                try await account.check(url, request, timeout: Self.patience)
            }
            let tried = steps.map { ($0, Finding($0, isNamed: false, of: state)) }
            // A wrong clock doesn't stop sync, but makes the wrong values win.
            for (step, finding) in tried {
                if !finding.isPassed || step.step == "clock" && !step.detail.isEmpty { found(finding, &findings) }
            }
            if tried.allSatisfy(\.1.isPassed) {
                found(Finding("remote", "\(url) passes all \(steps.count) steps"), &findings)
            }
        } catch let error as UbiquitousStoreError where error.code == .timedOut {
            let seconds = Self.patience.components.seconds
            let advice = "\"\(command)\" waits longer."
            found(
                Finding("remote", "\(url) didn't pass all steps within \(seconds) s\n\(advice)", isPassed: false),
                &findings)
        } catch let error as UbiquitousStoreError where error.code == .busy {
            found(Finding(untried: "remote", "the service is trying it for somebody else"), &findings)
        }
    }

    /// How long the test of the account's remote may take if the user hasn't named it.
    private static let patience = Duration.seconds(20)

    /// Returns the account's state; `nil` if the user has never used the service, which a call by root doesn't change.
    @BusActor
    private func state(of account: AccountObject) async throws -> AccountDescription? {
        do { return try await account.properties() } catch let error as UbiquitousStoreError
            where error.code == .unknownObject
        {
            return nil
        }
    }

    /// Looks for data of the user id that was set aside because the user's name has changed, and for data that the user
    /// had under another user id; for root.
    @BusActor
    private func foundSetAside(_ connection: ServiceConnection, _ findings: inout [Finding]) async throws {
        let uid = try service.uid()
        let all: [UserDataDescription]
        do { all = try await AdministrationObject(connection).data() } catch let error as UbiquitousStoreError {
            // An older service doesn't list it.
            if error.code != .unknownObject { found(Finding("data", error.message, isPassed: false), &findings) }
            return
        }
        let name = LocalUser.name(of: uid)
        for data in all where data.uid != uid && data.user == name && data.obstacle != nil {
            found(
                Finding(
                    "data",
                    "what \(data.user) had under the user id \(data.uid) is still there as \(data.name)\nIf this is the "
                        + "same person, \"ubiquitousctl admin adopt \(Output.shellWord(data.name)) \(uid)\" gives it back.",
                    isPassed: false),
                &findings)
        }
        for data in all where data.uid == uid && data.isSetAsideForName {
            found(
                Finding(
                    "data",
                    "what \(data.user) had under the user id \(uid) was set aside as \(data.name)\nIf this is the same "
                        + "person, \"ubiquitousctl admin adopt \(Output.shellWord(data.name)) \(uid)\" gives it back.",
                    isPassed: false),
                &findings)
        }
    }

    /// Checks whether the device has enough space, and whether damaged databases were set aside.
    private func device(_ account: AccountDescription) -> Finding {
        var problems: [String] = []
        if account.freeBytes < Self.scarce {
            problems.append(
                "\(SizeText.text(Int(account.freeBytes))) are left for the service's data\nMake room on the disk "
                    + "of the service's state directory.")
        }
        if !account.databasesSetAside.isEmpty {
            problems.append(
                "damaged databases were set aside: \(account.databasesSetAside.joined(separator: ", "))\nThe "
                    + "service's log says what was saved of each. Remove them once you are sure that nothing is missing."
            )
        }
        if problems.isEmpty { return Finding("disk", "there is room, and nothing was lost") }
        return Finding("disk", problems.joined(separator: "\n"), isPassed: false)
    }

    /// In bytes. With less space, the next writes fail.
    private static let scarce: Int64 = 8 << 20

    @BusActor
    private func identity(_ connection: ServiceConnection, _ caller: CallerDescription) async throws -> String {
        let uid = try service.uid()
        guard uid == geteuid() else {
            let stores = try await connection.manager.stores(ofEverybody: true).filter { $0.uid == uid }
            return "user \(uid), stores: \(stores.count); root asks"
        }
        let stores = caller.mayOpenAny ? "any" : "\(caller.entitled.count)"
        return "user \(caller.uid); stores that may be opened: \(stores)"
    }

    private func found(_ finding: Finding, _ findings: inout [Finding]) {
        findings.append(finding)
        if json { return }
        let style = Style(for: STDOUT_FILENO)
        let mark = finding.isPassed ? finding.isTried ? style.green("ok   ") : "     " : style.red("WRONG")
        let detail = Output.printable(finding.detail).replacing("\n", with: "\n       ")
        Output.print("\(mark)  \(style.bold(finding.step))" + (detail.isEmpty ? "" : ": \(detail)"))
    }

    private func finish(_ findings: [Finding], _ outcome: Outcome) throws {
        if json { Output.print(json: .array(findings.map(\.json))) }
        if !findings.allSatisfy(\.isPassed) { throw ReportedFailure(outcome: outcome) }
    }
}

/// The result of one of the doctor's checks.
private struct Finding: Sendable {
    let step: String
    let detail: String
    let isPassed: Bool
    let isTried: Bool

    init(_ step: String, _ detail: String, isPassed: Bool = true) {
        (self.step, self.detail, self.isPassed, isTried) = (step, detail, isPassed, true)
    }

    /// Makes the finding for a step of testing a remote.
    /// - Parameters:
    ///   - isNamed: whether the user has named the remote; otherwise it is the account's.
    ///   - account: the account that is signed in; `nil` if it is elsewhere.
    init(_ step: BackendStep, isNamed: Bool, of account: AccountDescription?) {
        // Where the account isn't any more, nothing is known of its key.
        let isGone = step.step == "key" && step.code == .noAccount && account != nil
        let isOthers = step.step == "key" && !step.isPassed && !isGone && account?.isReset == true
        let detail = isOthers ? "An account under another key than this device's is here." : step.detail
        let isKept = step.step == "leftovers" && account?.isPhraseUnconfirmed == true
        let advice: String? =
            if isKept {
                "It stays until somebody has seen the recovery phrase: \"ubiquitousctl account phrase\" shows it."
            } else if isOthers {
                "\"ubiquitousctl account resolve\" decides which is right."
            } else if step.step == "key", let advice = Failure.advice(on: step.detail) {
                advice.text
            } else if step.step == "clock", step.isDoubtful {
                "\"timedatectl\" shows this device's time, and what sets it."
            } else if step.isAuthorityUnknown {
                isNamed
                    ? "Name the file of its certificate with --ca-file, here and for signing in."
                    : "\"ubiquitousctl account renew --ca-file FILE\" takes its certificate."
            } else { nil }
        let name = isGone ? "sign-in" : step.step
        self.init(name, detail + (advice.map { "\n\($0)" } ?? ""), isPassed: step.isRight && !isKept)
    }

    /// Makes the finding for a check that was not done, with the reason.
    init(untried step: String, _ reason: String) {
        (self.step, detail, isPassed, isTried) = (step, "not tried: \(reason)", true, false)
    }

    var json: Value {
        var object: [Text: Value] = [
            "step": .string(Text(step)), "detail": .string(Text(detail)), "ok": .boolean(isPassed),
        ]
        if !isTried { object["tried"] = .boolean(false) }
        return .dictionary(object)
    }
}

extension BusAddress {
    fileprivate var words: String {
        switch self {
        case .system: "the system bus"
        case .session: "the session bus"
        case .address(let address): address
        }
    }
}
