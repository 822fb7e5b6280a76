// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import PlainText
internal import PropertyList
internal import SDBus
internal import UbiquitousStore

/// `account devices`.
struct DevicesCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices", abstract: "Lists the devices of the account.")

    @OptionGroup var service: ServiceOptions

    @Flag(help: "Print an array of JSON.")
    var json = false

    func perform() async throws {
        let devices = try await Progress.showing("Waiting for the service") {
            try await service.account().devices()
        }
        if json { return Output.print(json: .array(devices.map(\.json))) }
        let style = Style(for: 1)
        for device in devices {
            // Devices report to each other once a day, so that a time of day would mean nothing.
            let seen = device.isThisOne ? "this device" : "last seen \(TimeText.localDay(device.lastSeen))"
            let (identifier, name) = (Output.printableWord(device.identifier), Output.printableWord(device.name))
            Output.print("\(style.dim(identifier))  \(name)  \(style.dim(seen))")
        }
    }
}

/// `account rename`.
struct RenameCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "rename", abstract: "Changes what a device is called.")

    @OptionGroup var options: AccountOptions

    @Option(
        help: "Which device, by name or identifier (default: this one).",
        completion: .custom { arguments, _, _ in StoreCompletion.devices(arguments) })
    var device: String?

    @Argument(help: "The new name.")
    var name: String

    func validate() throws {
        guard !name.allSatisfy(\.isWhitespace), name.cleaned(atMost: 255, ending: "") == name else {
            throw ValidationError(
                localized("A name has 1 to 255 bytes, only characters that can be shown, and not spaces alone."))
        }
    }

    func perform() async throws {
        var identifier = ""
        try await options.make("Renaming") { account, description in
            guard description.isSignedIn else { throw AccountOptions.notSignedIn }
            let device = try await account.device(device)
            identifier = device.identifier
            return device.name == name ? nil : "rename \"\(device.name)\" to \"\(name)\""
        } _: {
            try await $0.renameDevice(identifier, name)
        }
    }
}

/// `account forget`.
struct ForgetCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "forget",
        abstract: "Removes a device that is lost or no longer used from the account's list.",
        discussion: """
            The values that it wrote stay. If the device is still in use, it is back on the list with its next change, \
            or after a day. To lock it out, change the remote's password, and give an encrypted account a new key. \
            Exits with 1 if there is no such device.
            """)

    @OptionGroup var options: AccountOptions

    @Argument(
        help: "The device, by name or identifier.",
        completion: .custom { arguments, _, _ in StoreCompletion.devices(arguments) })
    var device: String

    @Flag(help: "Give the encrypted account a new key and a new recovery phrase as well.")
    var replaceKey = false

    func perform() async throws {
        let (object, account) = try await options.signedIn()
        guard account.isEncrypted || !replaceKey else {
            throw Failure(
                .refused, "The account is not encrypted, so it has no key.",
                advice: "\"ubiquitousctl account encrypt\" encrypts it.")
        }
        var identifier = ""
        try await options.make("Forgetting") { account, description in
            let device = try await account.device(device)
            identifier = device.identifier
            // Before the account gets a new key for nothing.
            if identifier == description.deviceIdentifier {
                throw Failure(.refused, "A device can't forget itself. Sign out instead.")
            }
            return "forget \"\(device.name)\"" + (replaceKey ? ", and replace the account's key" : "")
        } _: { account in
            // First the step that may fail, so that the command can be repeated.
            if replaceKey { try await account.unlessPaused { try await account.replaceKey(timeout: Patience.remote) } }
            try await account.forgetDevice(identifier)
        }
        if replaceKey, !options.change.check { try await Phrase.tell(object, options.change) }
        if options.change.json || options.change.check { return }
        if account.isEncrypted, !replaceKey {
            Output.remark(
                """
                Nothing is revoked, and a device that is still in use is listed again with its next change, or after a \
                day. To keep a lost device out, change the password on the server, and then the account's key with \
                "ubiquitousctl account replace-key"
                """)
        } else if replaceKey {
            Output.remark(
                "That device can't read later uploads. To keep it from the server too, change the password there")
        } else {
            Output.remark(
                """
                Nothing is revoked, and a device that is still in use is listed again with its next change, or after a \
                day. To keep a lost device out, change the password on the server
                """)
        }
    }
}

extension AccountObject {
    /// Returns the device with an identifier or a name; this device if `name` is `nil`.
    ///
    /// If it isn't listed, polls the remote: the device may have joined since the last poll.
    fileprivate func device(_ name: String?) async throws -> DeviceDescription {
        guard let name else {
            let this = try await devices().first(where: \.isThisOne)
            guard let this else { throw Failure(.absent, "This device isn't listed.") }
            return this
        }
        if let device = try await listedDevice(name) { return device }
        try await unlessPaused { try await syncNow(timeout: Patience.remote) }
        if let device = try await listedDevice(name) { return device }
        throw Failure(
            .absent, "There is no device \(Output.quoted(name)).",
            advice: "\"ubiquitousctl account devices\" lists them.")
    }

    /// Returns the listed device with an identifier or a name; `nil` if there is none.
    private func listedDevice(_ name: String) async throws -> DeviceDescription? {
        let all = try await devices()
        if let device = all.first(where: { $0.identifier == name }) { return device }
        let named = all.filter { $0.name == name }
        guard let device = named.first else { return nil }
        guard named.count == 1 else {
            throw Failure(
                .usage, "\(named.count) devices are called \"\(name)\".",
                advice: "Name one by its identifier: \(named.map(\.identifier).joined(separator: ", ")).")
        }
        return device
    }
}

extension DeviceDescription {
    fileprivate var json: Value {
        var object: [Text: Value] = [
            "identifier": .string(Text(identifier)), "name": .string(Text(name)), "this": .boolean(isThisOne),
        ]
        object["last-seen"] = TimeText.value(lastSeen)
        return .dictionary(object)
    }
}
