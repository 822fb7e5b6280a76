// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import RemoteAddress
internal import SDBus
internal import UbiquitousStore

/// The credentials for a remote.
struct Credentials: ParsableArguments {
    @Option(help: ArgumentHelp("Your user name on the server. Prompts for the password.", valueName: "name"))
    var login: String?

    @Option(
        help: ArgumentHelp("Read the password from a file's first line; - is standard input.", valueName: "file"),
        completion: .file())
    var passwordFile: String?

    @Option(help: .hidden)
    var password: String?

    @Option(
        help: ArgumentHelp("Read an access token from a file's first line; - is standard input.", valueName: "file"),
        completion: .file())
    var tokenFile: String?

    @Option(
        help: ArgumentHelp("Trust these certificates for this server, in PEM.", valueName: "file"),
        completion: .file())
    var caFile: String?

    func validate() throws {
        if password != nil {
            throw ValidationError(
                localized(
                    """
                    There is no --password: other users of the machine see arguments, and the shell keeps them. Change \
                    the password if others may have seen it. Leave it out and you are asked for it, or use \
                    --password-file.
                    """))
        }
        if passwordFile == "-" && tokenFile == "-" {
            throw ValidationError(localized("Only one of --password-file and --token-file can be standard input."))
        }
    }

    /// Whether any are given. If so, signing in again renews the account's credentials.
    var hasAny: Bool { login != nil || passwordFile != nil || tokenFile != nil || caFile != nil }

    /// Refuses a password for a server without a login. A folder has no use for either.
    func checkLogin(for url: String) throws {
        guard passwordFile != nil, login == nil, tokenFile == nil, !url.hasPrefix("folder:") else { return }
        throw Failure(.usage, "--password-file goes with --login, which names the user on the server.")
    }

    /// Returns the options for signing in, and asks for a missing password.
    @BusActor
    func options(for url: String) async throws -> SignInOptions {
        var options = SignInOptions()
        options.user = login
        // Read this file before asking for a password.
        options.certificateAuthority = try caFile.map(Self.certificates)
        if let passwordFile {
            options.password = try Password.read(from: passwordFile)
        } else if let login, tokenFile == nil {
            options.password = try await Password.ask(localized("Password of \(login) for \(url): "))
        }
        options.token = try tokenFile.map { try Password.read(from: $0) }
        return options
    }

    /// Asks at a terminal for the login that a remote requires; `nil` elsewhere, and if one was given.
    @BusActor
    func asked(for url: String) async throws -> (user: String, password: String)? {
        guard login == nil, passwordFile == nil, tokenFile == nil, isatty(STDIN_FILENO) == 1 else { return nil }
        let own = LocalUser.name(of: geteuid()) ?? ""
        Output.write(localized("Your user name on the server (\(own)): "), to: STDERR_FILENO)
        guard let typed = readLine() else { throw Failure(.usage, "There was no answer.", advice: "Use --login.") }
        let user = typed.isEmpty ? own : typed
        return (user, try await Password.ask(localized("Password of \(user) for \(url): ")))
    }

    private static func certificates(in file: String) throws -> [UInt8] {
        let bytes = try WholeFile.read(file)
        guard PEM.hasCertificate(bytes) else {
            throw Failure(
                .usage, "The file \(Output.quoted(file)) has no certificate in PEM.",
                advice: "\"openssl x509 -inform DER -in FILE\" converts one.")
        }
        return bytes
    }

    private static let webSchemes = ["http": "webdav", "https": "webdavs", "dav": "webdav", "davs": "webdavs"]

    /// Checks an address of a remote. It must not contain a password, because every user of the machine can see
    /// arguments, and the shell's history keeps them.
    static func check(_ url: String) throws {
        if url.hasPrefix("/"), !url.contains(where: { $0.isWhitespace || "%?#".contains($0) }) {
            let folder = "folder://" + url
            throw ValidationError(localized("\"\(url)\" is a path; the address of that folder is \(folder)."))
        }
        guard url.contains(":"), !url.hasPrefix(":") else {
            throw ValidationError(
                localized(
                    """
                    "\(url)" is not an address; write folder:///PATH, webdavs://HOST/PATH or etcds://HOST/PREFIX.
                    """))
        }
        let authority = RemoteAddress.authority(of: url)
        if let at = authority.lastIndex(of: "@"), authority[..<at].contains(":") {
            throw ValidationError(
                localized(
                    """
                    A password in the address can be seen by everybody, and now it has been: change it, and use \
                    --login and --password-file.
                    """))
        }
        let written = RemoteAddress.scheme(of: url)
        if written == "file" {
            let folder = "folder" + url.dropFirst(written.count)
            throw ValidationError(localized("\"\(url)\" is a file's address; that of a folder is \(folder)."))
        }
        if let scheme = webSchemes[written] {
            let address = scheme + url.dropFirst(written.count)
            throw ValidationError(
                localized("\"\(url)\" is a web address; that of a folder of a WebDAV server is \(address)."))
        }
    }
}
