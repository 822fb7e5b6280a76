// SPDX-License-Identifier: Apache-2.0

// Layers of defaults domains are stores too: `!d/<domain>`, and `!h/<domain>` for this host only. All their keys are
// local, so they are in the overlay, which a change of account doesn't touch. They have limits of their own, and are
// not synced.

package import PropertyList
internal import Replication

extension Store {
    /// Returns the identifier of a domain's layer.
    package static func layerIdentifier(ofDomain domain: String, isHost: Bool) -> String {
        (isHost ? hostPrefix : domainPrefix) + domain
    }

    /// Returns the domain of a layer's identifier, and whether it is for this host only; `nil` for an app's store.
    package static func layer(_ identifier: String) -> (domain: String, isHost: Bool)? {
        // Compares bytes, because Swift may join the first character of a domain's name with the one before it.
        for (prefix, isHost) in [(domainPrefix, false), (hostPrefix, true)]
        where identifier.utf8.starts(with: prefix.utf8) {
            return (String(Substring(identifier.utf8.dropFirst(prefix.utf8.count))), isHost)
        }
        return nil
    }

    private static let domainPrefix = "!d/"
    private static let hostPrefix = "!h/"

    /// Returns whether an identifier is a layer's. Layers never leave the device.
    static func isLayer(_ identifier: String) -> Bool { identifier.utf8.first == UInt8(ascii: "!") }

    /// Whether the store is a layer of a defaults domain.
    package var isLayer: Bool { Self.isLayer(identifier) }
}

extension Store {
    /// Stages setting and removing keys of a layer, as ``stage(setting:removing:ifGeneration:)`` does, except for keys
    /// that changed after a generation. These stay as they are, and the value that loses goes into the key's history.
    ///
    /// - Returns: the keys whose visible value has changed.
    package func stage(
        setting values: [(Key, Value)], removing removed: [Key], unlessChangedSince base: UInt64
    ) throws(EngineError) -> [Key] {
        let changed = knowsChanges(since: base) ? Set(changes(since: base).keys) : []
        let losers = values.filter { changed.contains($0.0) && value(for: $0.0) != $0.1 }
        // An invalid value is refused before anything is staged, even if it would lose.
        let sizes = try losers.map { (key, value) throws(EngineError) in try validate(value, for: key, among: values) }
        let keys = try stage(
            setting: values.filter { !changed.contains($0.0) }, removing: removed.filter { !changed.contains($0) })
        for (loser, size) in zip(losers, sizes) { stage(loser: loser.1, size: size, of: loser.0) }
        return keys
    }

    /// Puts a value into a key's history, as a change after which the key gets its present content back.
    private func stage(loser value: Value, size: Int, of key: Key) {
        guard let present = overlay.records[key] else { return }
        database.willStage(self)
        let time = database.environment.time()
        for (content, cause) in [(Record.Content.value(value, size: size), Cause.written), (present.content, .joined)] {
            append(
                key, to: overlay, stamp: present.stamp, n: cause == .written ? nil : present.n, content: content,
                generation: present.generation, cause: cause, time: time)
        }
    }
}

extension LocalKeys {
    /// Every key is local.
    static let all = LocalKeys(["*"])
}
