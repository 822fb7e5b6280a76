// SPDX-License-Identifier: Apache-2.0

internal import Files
internal import Glibc
internal import StoreBus

/// A user's data in an unpacked archive.
struct ArrivedData: Sendable {
    /// What the data is to the user of its name.
    enum Kind: Equatable, Sendable {
        /// What the user had in use.
        case inUse
        /// It was set aside in the archive.
        case setAside
        /// It was in use under another uid than the user's, which was this one when the archive was made.
        case former(now: UInt32)
        /// There is data of several uids under the name, and the archive doesn't say which uid was the user's.
        case unclear
    }

    /// The name of its directory in the archive.
    let directory: String
    /// The name under which it is set aside until it is adopted.
    let name: String
    let user: String
    private(set) var kind: Kind
    private let uid: UInt32
    /// Whether data of another uid was in use under the same name.
    private var hasNamesakes = false

    /// The user's name for a line; if that isn't enough to tell the data, with its directory in the archive.
    var label: String {
        let word = Output.printableWord(user)
        return hasNamesakes ? "\(word) (\(directory))" : word
    }

    /// Returns all data in a directory into which an archive was unpacked, by name.
    /// - Parameter present: the names of the data on this machine.
    static func all(in place: String, besides present: Set<String>) -> [ArrivedData] {
        var all = DirectoryListing.names(in: place).sorted().reduce(into: [ArrivedData]()) { all, name in
            let taken = present.union(all.map(\.name))
            if let data = ArrivedData(name, in: place, besides: taken) { all.append(data) }
        }
        let uids = recordedUids(in: place)
        let namesakes = Dictionary(grouping: all.filter { $0.kind == .inUse }, by: \.user)
        for index in all.indices where all[index].kind == .inUse {
            all[index].compare(with: namesakes[all[index].user] ?? [], uid: uids[all[index].user])
        }
        return all
    }

    /// - Parameters:
    ///   - place: the directory into which the archive was unpacked.
    ///   - present: the names of the data on this machine.
    private init?(_ directory: String, in place: String, besides present: Set<String>) {
        var status = stat()
        guard let uid = DataNames.uid(inName: directory),
            lstat("\(place)/\(directory)", &status) == 0, status.st_mode & S_IFMT == S_IFDIR
        else { return nil }
        (self.directory, self.uid) = (directory, uid)
        user = Self.recordedName(in: "\(place)/\(directory)") ?? "unknown"
        let wasSetAside = directory != "u\(uid)"
        kind = wasSetAside ? .setAside : .inUse
        let now = UInt64(max(0, time(nil)))
        // No name of a time to come, beside which later data of the user would find no place.
        let isPast = directory.split(separator: ".").last.flatMap(DataNames.seconds).map { $0 <= now } ?? true
        name =
            wasSetAside && isPast
            ? directory : DataNames.setAside(uid: uid, user: user, seconds: now, besides: present)
    }

    /// Finds out whether the data was its user's, or is left from a uid that the user had before.
    /// - Parameters:
    ///   - namesakes: all that was in use under its user's name.
    ///   - userUid: the user's uid when the archive was made; `nil` if the archive doesn't say.
    private mutating func compare(with namesakes: [ArrivedData], uid userUid: UInt32?) {
        hasNamesakes = namesakes.count > 1
        // The user's own data may be missing in the archive.
        if let userUid {
            kind = userUid == uid ? .inUse : .former(now: userUid)
        } else if hasNamesakes {
            kind = .unclear
        }
    }

    /// Reads which uids users had, as far as it was recorded.
    private static func recordedUids(in place: String) -> [String: UInt32] {
        guard let text = Files.text(of: "\(place)/\(DataNames.namesakes)", atMost: 1 << 20) else { return [:] }
        return text.split(separator: "\n").reduce(into: [:]) { uids, line in
            let words = line.split(separator: " ", maxSplits: 1)
            if words.count == 2, let uid = UInt32(words[0]) { uids[String(words[1])] = uid }
        }
    }

    private static func recordedName(in directory: String) -> String? {
        guard let bytes = try? WholeFile.read(directory + "/user"),
            (1...DataNames.longestUserName).contains(bytes.count),
            !bytes.contains(where: { $0 < 0x20 || $0 == UInt8(ascii: "/") })
        else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }
}
