// SPDX-License-Identifier: Apache-2.0

/// The versions of heads that a listing tells. They include the length, since some servers use one ETag for everything
/// that is written within a second, and consecutive heads have different lengths.
struct HeadVersions {
    private var versions: [String: Version] = [:]

    private struct Version {
        let text: String
        /// The head's length in bytes, if the server tells it.
        let length: Int?
    }

    /// The most versions that are kept, and the longest, in bytes. Heads without one are read at each poll.
    private static let (most, longest) = (8192, 256)

    init(_ heads: [Multistatus.Member] = []) {
        if heads.count > Self.most { return }
        for head in heads where head.tag != nil || head.modified != nil {
            // For a second after a write, Apache's ETag is weak; then it is the same without the mark.
            let tag = head.tag.map { $0.hasPrefix("W/") ? String($0.dropFirst(2)) : $0 }
            let text = [tag, head.length, head.modified].map { $0 ?? "" }.joined(separator: "\n")
            if text.utf8.count > Self.longest { continue }
            versions[head.name] = Version(text: text, length: head.length.flatMap { Int($0) })
        }
    }

    /// The version of a head; `nil` if it has none.
    subscript(name: String) -> String? { versions[name]?.text }

    /// Returns the version of a head that was read since: the listing's. If the head has changed in between, it is read
    /// once more. A server whose listings are ahead of its files may have returned the head before, which has another
    /// length and so gets no version.
    func version(of name: String, read bytes: Int) -> String? {
        guard let version = versions[name], version.length == nil || version.length == bytes else { return nil }
        return version.text
    }
}
