// SPDX-License-Identifier: Apache-2.0

internal import Crypto
internal import Sealing

// Sealed blobs, markers and phrases. No fuzzer guesses a sum, a tag or a checksum. These are made right, so that the
// code behind them is reached.
extension FuzzTarget {
    private static let key = AccountKey(
        secret: Array(0..<16), identifier: KeyIdentifier(high: 0x7878_7878_7878_7878, low: 0x7878_7878_7878_7878))

    static func sealed(_ bytes: [UInt8]) -> String? {
        guard let keys = key?.blobs else { return "there is no key" }
        // There is one form of what holders of the key have sealed.
        if let opened = try? SealedBlob(segment: bytes, keys),
            SealedBlob.seal(segment: opened.content, keys).bytes != bytes
        {
            return "a segment was opened that nobody sealed"
        }
        if let opened = try? SealedBlob(head: bytes + SHA256.hash(data: bytes), keys), opened.kind == .segment {
            return "a head was opened as a segment"
        }
        for isHead in [false, true] {
            if let content = try? SealedBlob.content(of: bytes, isHead: isHead), content.count >= bytes.count {
                return "there is more in a box than was put in"
            }
        }
        let (segment, name) = SealedBlob.seal(segment: bytes, keys)
        guard let opened = try? SealedBlob(segment: segment, keys), opened.content == bytes,
            Array(opened.salt.prefix(16)) == name
        else { return "a segment becomes another one" }
        let head = SealedBlob.seal(head: bytes, origin: 5, sequence: UInt64(bytes.count), random: (1, 2), keys)
        return (try? SealedBlob(head: head, keys))?.content == bytes ? nil : "a head becomes another one"
    }

    static func marker(_ bytes: [UInt8]) -> String? {
        guard let key else { return "there is no key" }
        let summed = bytes + SHA256.hash(data: bytes)
        if let link = try? KeyLink(note: summed, named: noteName(bytes)) {
            if link.isProven(by: key.blobs), link != KeyLink(from: key, to: link.second, link.kind) {
                return "a link that nobody made is proven"
            }
            if (try? KeyLink(note: link.note(), named: link.noteName)) != link { return "a note becomes another one" }
        }
        guard let marker = try? SealedMarker(decoding: summed) else { return nil }
        if marker.links.count > SealedMarker.mostLinks { return "a marker has too many links" }
        let own = SealedMarker(of: key, time: marker.time, links: marker.links)
        guard (try? SealedMarker(decoding: own.bytes)) == own else { return "a marker becomes another one" }
        if marker.isGenuine(under: key.blobs), marker != own { return "a marker that nobody made is genuine" }
        return choice(marker, own, key)
    }

    /// Checks what one forged marker can make a device do.
    private static func choice(_ marker: SealedMarker, _ own: SealedMarker, _ key: AccountKey) -> String? {
        let seen = SeenMarkers(sealed: [own, marker].filter { $0 == own || $0.identifier != own.identifier })
        switch MarkerChoice(among: seen, key: key, wasEncrypted: true) {
        case .using, .keyNeeded(marker.identifier): break
        default: return "a marker beside its own has a device do something else than go on or stop"
        }
        let choice = MarkerChoice(among: seen, key: key, wasEncrypted: true, rejected: [marker.identifier])
        return choice == .using || marker.identifier == own.identifier ? nil : "a rejected marker counts"
    }

    /// The name of a note with these bytes.
    private static func noteName(_ bytes: [UInt8]) -> String {
        bytes.dropFirst(6).prefix(33).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }

    static func phrase(_ bytes: [UInt8]) -> String? {
        let identifier = KeyIdentifier(high: 0, low: 1)
        if let key = AccountKey(secret: Array(bytes.prefix(16)), identifier: identifier) {
            let text = RecoveryPhrase(of: key).words.joined(separator: " ")
            guard (try? RecoveryPhrase(reading: text))?.key(identifier) == key else {
                return "a secret becomes another one by way of its words"
            }
        }
        guard let phrase = try? RecoveryPhrase(reading: String(decoding: bytes, as: UTF8.self)) else { return nil }
        let again = try? RecoveryPhrase(reading: phrase.words.joined(separator: "\n"))
        return again?.key(identifier) == phrase.key(identifier) ? nil : "a phrase becomes another one"
    }
}
