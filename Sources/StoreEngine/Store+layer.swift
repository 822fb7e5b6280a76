// SPDX-License-Identifier: Apache-2.0

// Layers of defaults domains are stores as well: `!d/<domain>`, and `!h/<domain>` for this host only. All their keys
// are local, so they are in the overlay, which accounts leave alone; they have limits of their own, and no part in the
// sync.

public import PropertyList
internal import Replication

extension Store {
    /// The identifier of a domain's layer.
    public static func layerIdentifier(ofDomain domain: String, isHost: Bool) -> String {
        (isHost ? hostPrefix : domainPrefix) + domain
    }

    /// The domain whose layer an identifier names, and which layer it is; `nil`: it names an app's store.
    public static func layer(_ identifier: String) -> (domain: String, isHost: Bool)? {
        // By bytes: a domain's name may begin with what Swift takes for a part of the character before it.
        for (prefix, isHost) in [(domainPrefix, false), (hostPrefix, true)]
        where identifier.utf8.starts(with: prefix.utf8) {
            return (String(Substring(identifier.utf8.dropFirst(prefix.utf8.count))), isHost)
        }
        return nil
    }

    private static let domainPrefix = "!d/"
    private static let hostPrefix = "!h/"

    /// Whether an identifier is a layer's. Nothing of these ever leaves the device.
    static func isLayer(_ identifier: String) -> Bool { identifier.utf8.first == UInt8(ascii: "!") }

    /// Whether it is a layer of a defaults domain.
    public var isLayer: Bool { Self.isLayer(identifier) }
}

extension Store {
    /// Sets and removes keys of a layer as ``stage(setting:removing:ifGeneration:)`` does, but for those that changed
    /// after a generation: these stay as they are, and the value that loses goes into the key's history.
    ///
    /// - Returns: the keys whose visible value is another one.
    public func stage(
        setting values: [(Key, Value)], removing removed: [Key], unlessChangedSince base: UInt64
    ) throws(EngineError) -> [Key] {
        let changed = knowsChanges(since: base) ? Set(changes(since: base).keys) : []
        let losers = values.filter { changed.contains($0.0) && value(for: $0.0) != $0.1 }
        // A value that can't be stored is refused, whether it wins or not, before anything is staged.
        let sizes = try losers.map { (key, value) throws(EngineError) in try validate(value, for: key, among: values) }
        let keys = try stage(
            setting: values.filter { !changed.contains($0.0) }, removing: removed.filter { !changed.contains($0) })
        for (loser, size) in zip(losers, sizes) { stage(loser: loser.1, size: size, of: loser.0) }
        return keys
    }

    /// Puts a value into a key's history: as a change after which the key has again what it had.
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
