// SPDX-License-Identifier: Apache-2.0

internal import Files
internal import RemoteAddress
internal import Sealing

/// The keys that sign-ins have made for new accounts, until the user is signed in with them.
///
/// A sign-in that was given up, or whose answer never came, may have created its account all the same. Without the key,
/// nobody could open that, and nobody could create another one in its place. So a key stays here whatever else the user
/// signs in to or out of.
struct AttemptedKeys {
    /// The user's directory.
    let directory: String

    /// How many keys are kept. More than these are the oldest, and are removed.
    private static let most = 16
    private static let (beginning, ending) = ("attempted-key-", ".plist")

    private func path(_ key: KeyIdentifier) -> String { "\(directory)/\(Self.beginning)\(key)\(Self.ending)" }

    /// The keys, the latest one first.
    private var all: [AccountKeyFile] {
        DirectoryListing.names(in: directory).filter { $0.hasPrefix(Self.beginning) && $0.hasSuffix(Self.ending) }
            .compactMap { try? AccountKeyFile.read("\(directory)/\($0)") }
            .sorted { $0.marker.time > $1.marker.time }
    }

    /// Returns the latest key for an account at a URL; `nil` if there is none.
    func key(at url: String) -> HeldKey? {
        all.first { $0.place.map { RemoteAddress.areSame($0, url) } ?? false }?.held
    }

    /// Keeps a key before the account is created.
    func keep(_ held: HeldKey, at url: String) throws {
        for old in all.dropFirst(Self.most - 1) { try remove(old.key.identifier) }
        var file = AccountKeyFile(key: held.key, marker: held.marker, stage: .moving)
        file.place = url
        try file.write(path(held.key.identifier))
    }

    /// Removes a key, because the user is signed in with it, or later attempts have made many.
    func remove(_ key: KeyIdentifier) throws {
        try PrivateFile.remove(path(key))
    }
}
