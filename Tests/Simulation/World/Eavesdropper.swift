// SPDX-License-Identifier: Apache-2.0

internal import Sealing

/// Reads everything that the devices of an encrypted account send, and searches it for the account's contents.
struct Eavesdropper {
    /// The identifier of the account's key, which is no secret.
    let key: KeyIdentifier

    /// - Returns: what can be read, or breaks the format; `nil` if nothing does.
    func find(_ name: String, _ bytes: [UInt8]) -> String? {
        for secret in Names.secrets where Self.has(bytes, Array(secret.utf8)) || name.contains(secret) {
            return "I18: it has \"\(secret)\" in it"
        }
        if Self.hasRun(bytes) { return "I18: it has what is no random byte" }
        return findFlaw(name, bytes)
    }

    /// Searches a row of a cluster in the same way. The row's key comes without its prefix.
    func find(inRow row: String, _ bytes: [UInt8]) -> String? {
        switch row {
        case "account": bytes == [2] ? nil : "I20: it is not the fence"
        case "blob/changed": bytes.count == 8 ? nil : "I18: it has more than a number"
        case _ where row.hasPrefix("blob/"): find(String(row.dropFirst(5)), bytes)
        default: "I20: it is a row of an unencrypted account"
        }
    }

    /// Checks that a blob is encrypted under the account's key, and that its length is padded.
    private func findFlaw(_ name: String, _ bytes: [UInt8]) -> String? {
        let isHead = name.hasPrefix("h/")
        let noteName = String(name.dropFirst(2))
        let isNote = KeyLink(noteName: noteName) != nil || FormerName(noteName: noteName) != nil
        let magic = isNote ? "UKVr" : name.hasPrefix("a/") ? "UKVa" : isHead ? "UKVh" : "UKVx"
        if !bytes.starts(with: Array(magic.utf8) + [1, 2]) { return "I20: it is unencrypted" }
        // A note also names the former key.
        if isNote { return nil }
        if !bytes.dropFirst(6).starts(with: key.bytes) { return "I20: it is not under the account's key" }
        // The bytes around the content, and the zeros that may follow a head's content.
        let (overhead, zeros) = isHead ? (110, 0...16) : (70, 0...0)
        if magic == "UKVa" || zeros.contains(where: { (bytes.count - overhead - $0) % 256 == 0 }) { return nil }
        return "I18: its length is \(bytes.count) bytes"
    }

    private static func has(_ bytes: [UInt8], _ part: [UInt8]) -> Bool {
        var index = 0
        while index + part.count <= bytes.count {
            if bytes[index] == part[0], bytes[index..<index + part.count].elementsEqual(part) { return true }
            index += 1
        }
        return false
    }

    /// Whether twelve bytes in a row are equal, as in values that are only there to be large.
    private static func hasRun(_ bytes: [UInt8]) -> Bool {
        var length = 0
        for index in bytes.indices.dropFirst() {
            length = bytes[index] == bytes[index - 1] ? length + 1 : 0
            if length == 11 { return true }
        }
        return false
    }
}
