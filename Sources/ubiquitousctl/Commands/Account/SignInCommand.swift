// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import UbiquitousStore

/// `account sign-in`.
struct SignInCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "sign-in",
        abstract: "Signs in to an account, and makes it where nothing is.",
        discussion: """
            URL is folder:///PATH, webdavs://HOST/PATH or etcds://HOST/PREFIX; without one it is where the machine's \
            administrator has an account ready. The remote is verified first; the \
            download follows in the background ("status" shows it). Being signed in there already is no change, unless \
            there are new credentials. With --check the remote is tried with the credentials, and nothing is changed. To go to another account, use "account switch".

            A password is asked for without showing it, or read from --password-file, or from a pipe: never from an \
            argument, which every user of the machine can see.
            """)

    @OptionGroup var options: AccountOptions
    @OptionGroup var credentials: Credentials
    @OptionGroup var joining: JoiningOptions

    func perform() async throws {
        try await joining.signIn(options, credentials) { account, url in
            guard account.state == "signed-out" || joining.isPlace(url, of: account) else {
                throw Failure(
                    .refused, "This device is signed in to \(account.backend) already.",
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

    func perform() async throws {
        try await joining.signIn(options, credentials) { account, url in
            guard account.state != "signed-out" else {
                throw Failure(
                    .refused, "This device isn't signed in.",
                    advice: "Use \"ubiquitousctl account sign-in \(url)\".")
            }
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
