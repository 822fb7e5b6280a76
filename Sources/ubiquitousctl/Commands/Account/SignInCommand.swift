// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import PlaceAddress
internal import SDBus
internal import UbiquitousStore

/// `account sign-in`.
struct SignInCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "sign-in",
        abstract: "Signs in to an account, and makes it where nothing is.",
        discussion: """
            URL is folder:///PATH, webdavs://HOST/PATH or etcds://HOST/PREFIX. The remote is verified first; the \
            download follows in the background ("status" shows it). Being signed in there already is no change, unless \
            there are new credentials. To go to another account, use "account switch".

            A password is asked for without showing it, or read from --password-file, or from a pipe: never from an \
            argument, which every user of the machine can see.
            """)

    @OptionGroup var options: AccountOptions
    @OptionGroup var credentials: Credentials
    @OptionGroup var joining: JoiningOptions

    func validate() throws { try Credentials.check(joining.url) }

    func perform() async throws {
        try await joining.signIn(options, credentials) { account in
            guard account.state == "signed-out" || joining.isPlace(of: account) else {
                throw Failure(
                    .refused, "This device is signed in to \(account.backend) already",
                    advice: "Use \"ubiquitousctl account switch\" to go to another account.")
            }
        }
    }
}

/// `account switch`.
struct SwitchCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "switch",
        abstract: "Goes from the account that is signed in to another one.",
        discussion: """
            The stores then show the other account's values. What was not uploaded to this one stays with it, and goes \
            out when this device returns to it.
            """)

    @OptionGroup var options: AccountOptions
    @OptionGroup var credentials: Credentials
    @OptionGroup var joining: JoiningOptions

    func validate() throws { try Credentials.check(joining.url) }

    func perform() async throws {
        try await joining.signIn(options, credentials) { account in
            guard account.state != "signed-out" else {
                throw Failure(
                    .refused, "This device isn't signed in",
                    advice: "Use \"ubiquitousctl account sign-in \(joining.url)\".")
            }
        }
    }
}

/// How an account is joined.
struct JoiningOptions: ParsableArguments {
    @Option(help: ArgumentHelp("What other devices are told this one is called.", valueName: "name"))
    var deviceName: String?

    @Flag(help: "Make no account where none is.")
    var noCreate = false

    @Flag(help: "Take the present values along into a new, empty account.")
    var bringValues = false

    @Argument(help: "Where the account lives.")
    var url: String

    /// Whether the account is there already, with or without slashes at the end.
    func isPlace(of account: AccountDescription) -> Bool {
        func trimmed(_ url: String) -> Substring {
            url[..<(url.lastIndex { $0 != "/" }.map(url.index(after:)) ?? url.startIndex)]
        }
        return trimmed(account.backend) == trimmed(url)
    }

    /// Signs in, unless it is so already and nothing new is given.
    @BusActor
    func signIn(
        _ options: AccountOptions, _ credentials: Credentials, check: (AccountDescription) throws -> Void
    ) async throws {
        try await options.make("Signing in") { _, account in
            try check(account)
            let isThere = account.state != "signed-out" && isPlace(of: account) && account.state != "auth-failed"
            return isThere && !credentials.areGiven && deviceName == nil ? nil : "sign in to \(url)"
        } _: { account in
            // Before a password is asked for.
            if let warning = PlaceAddress.warning(of: url) { Output.remark(warning) }
            var request = try await credentials.options(for: url)
            request.deviceName = deviceName
            request.createsAccount = !noCreate
            request.bringsValues = bringValues
            _ = try await account.signIn(url, request, timeout: Patience.remote)
        }
    }
}

/// `account sign-out`.
struct SignOutCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "sign-out",
        abstract: "Signs out; the values stay on this device.",
        discussion: "Being signed out already is no change.")

    @OptionGroup var options: AccountOptions

    @Flag(help: "Remove the account's values from this device, their history included.")
    var clearValues = false

    func perform() async throws {
        try await options.make("Signing out") { _, account in
            guard account.state != "signed-out" else { return nil }
            return "sign out of \(account.backend)" + (clearValues ? ", and remove its values from this device" : "")
        } _: {
            try await $0.signOut(keepingValues: !clearValues)
        }
    }
}
