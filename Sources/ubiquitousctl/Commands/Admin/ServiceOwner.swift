// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import SDBus
internal import StoreBus
internal import UbiquitousStore

/// The service's user, and the service's state directory.
///
/// Root works in the directory as this user, because a link in it could lead root anywhere. For the same reason, it has
/// to be this user's, whatever the service says.
struct ServiceOwner {
    /// The directory's path.
    let stateDirectory: String
    private let uid: uid_t
    private let gid: gid_t

    /// Asks the service for its directory, and the bus for its user.
    @BusActor
    init(_ object: AdministrationObject) async throws {
        stateDirectory = try await object.stateDirectory()
        // Others aren't told where it is.
        guard !stateDirectory.isEmpty else { throw UbiquitousStoreError(.accessDenied, "Only root may do this.") }
        uid = try await object.connection.serviceUser()
        var status = stat()
        guard lstat(stateDirectory, &status) == 0 else {
            throw Failure(
                .refused, "\(stateDirectory) can't be examined: \(String(cString: strerror(errno))).",
                advice: "Use sudo.")
        }
        if status.st_mode & S_IFMT == S_IFLNK {
            throw Failure(
                .refused, "\(Output.printable(stateDirectory)) is a symbolic link, which could lead root anywhere.",
                advice: "Let the service use the directory itself (--state-directory=), or mount that here.")
        }
        guard status.st_mode & S_IFMT == S_IFDIR, status.st_uid == uid else {
            throw Failure(.refused, "\(Output.printable(stateDirectory)) is not a directory of the service's user.")
        }
        gid = getpwuid(uid)?.pointee.pw_gid ?? status.st_gid
    }

    /// Returns a backup's path if the service has named one in its state directory.
    func backup(_ path: String) throws -> String {
        let prefix = "\(stateDirectory)/\(DataNames.backupPrefix)"
        guard path.hasPrefix(prefix), UInt64(path.dropFirst(prefix.count)) != nil else {
            throw Failure(.refused, "\(Output.printable(path)) is not a backup in \(Output.printable(stateDirectory)).")
        }
        return path
    }

    /// Runs `body` as the owner.
    /// - Throws: ``Failure`` if the program can't become the owner, without running `body`.
    func perform<T>(_ body: () throws -> T) throws -> T {
        let (ownUser, ownGroup) = (geteuid(), getegid())
        if ownUser == uid { return try body() }
        defer { _ = (seteuid(ownUser), setegid(ownGroup)) }
        guard setegid(gid) == 0, seteuid(uid) == 0 else {
            throw Failure(
                .refused, "Switching to the service's user failed: \(String(cString: strerror(errno))).",
                advice: "Run with sudo, and not in a container that forbids it.")
        }
        return try body()
    }

    /// Runs a program as the owner, and waits for its end.
    /// - Parameter mayGoOn: is asked a hundred times a second; the program is killed if it returns false.
    /// - Returns: its exit code; -1 if it could not be run or was killed.
    func run(
        _ words: [String], input: Int32 = STDIN_FILENO, output: Int32 = STDOUT_FILENO, errors: Int32 = STDERR_FILENO,
        asLongAs mayGoOn: (() -> Bool)? = nil
    ) -> Int32 {
        let prefix =
            geteuid() == uid ? [] : ["setpriv", "--reuid=\(uid)", "--regid=\(gid)", "--clear-groups", "--"]
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
        posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
        posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO)
        // Ctrl-C ends the program even while this process defers the signal.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        let words = prefix + words
        let arguments = words.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        var pid: pid_t = 0
        guard posix_spawnp(&pid, words[0], &actions, &attributes, arguments, environ) == 0 else { return -1 }
        var status: Int32 = 0
        while true {
            let ended = waitpid(pid, &status, mayGoOn == nil ? 0 : WNOHANG)
            if ended == pid { break }
            if ended < 0, errno != EINTR { return -1 }
            if let mayGoOn, ended == 0 {
                if !mayGoOn() { kill(pid, SIGKILL) }
                usleep(10_000)
            }
        }
        return status & 0x7F == 0 ? (status >> 8) & 0xFF : -1
    }

    /// Returns tar's option for the compression that an archive's name asks for: its program's name.
    static func compression(of file: String) -> [String] { program(of: file).map { ["--\($0)"] } ?? [] }

    /// Throws if the program is missing that compresses an archive of this name.
    static func checkCompression(of file: String) throws {
        guard let program = program(of: file) else { return }
        let directories = (Variable.value(of: "PATH") ?? "").split(separator: ":")
        if directories.contains(where: { access("\($0)/\(program)", X_OK) == 0 }) { return }
        throw Failure(
            .usage, "\(program), which the archive's name asks for, is not installed.",
            advice: "Install it, or name a file that ends in .tar.")
    }

    private static func program(of file: String) -> String? {
        let endings = [(".gz", "gzip"), (".tgz", "gzip"), (".bz2", "bzip2"), (".xz", "xz"), (".zst", "zstd")]
        return endings.first { file.hasSuffix($0.0) }?.1
    }
}
