// SPDX-License-Identifier: Apache-2.0

internal import HTTPClient
internal import Synchronization

/// What a server says is in a folder: the answer to a PROPFIND (RFC 4918, 13), read as it comes.
struct Multistatus {
    /// Something that is there.
    struct Member: Equatable {
        /// The last part of its address.
        var name = ""
        /// It ends with a slash or says that it is one: a folder.
        var isFolder = false
        /// Whatever the server has that becomes another when the content does.
        var tag: String?
        var length: String?
        var modified: String?
    }

    private(set) var members: [Member] = []
    private var scanner = XMLScanner()
    private var path: [String] = []
    private var member: Member?
    private var text = ""
    private let keeps: (String) -> Bool

    /// No folder of ours has more names. What is beyond is not listed.
    private static let mostMembers = 1 << 16
    private static let mostTextBytes = 8 << 10

    /// - Parameter keeps: whether a name is worth remembering.
    init(keeping keeps: @escaping (String) -> Bool = { _ in true }) { self.keeps = keeps }

    mutating func feed(_ bytes: UnsafeRawBufferPointer) throws(XMLScanner.Flaw) {
        var events: [XMLScanner.Event] = []
        try scanner.feed(bytes) { events.append($0) }
        for event in events { take(event) }
    }

    func finish() throws(XMLScanner.Flaw) { try scanner.finish() }

    private mutating func take(_ event: XMLScanner.Event) {
        switch event {
        case .begin(let name, let isDAV):
            path.append(isDAV ? name : "")
            text = ""
            if path == ["multistatus", "response"] { member = Member() }
            if path == Self.property + ["resourcetype", "collection"] { member?.isFolder = true }
        case .text(let more):
            if text.utf8.count + more.utf8.count <= Self.mostTextBytes { text += more }
        case .end:
            end()
            path.removeLast()
        }
    }

    private static let property = ["multistatus", "response", "propstat", "prop"]

    private mutating func end() {
        let trimmed = trimmed
        switch path {
        case ["multistatus", "response", "href"]: setName()
        case ["multistatus", "response", "status"]:
            // Of itself: a member that is named and not there.
            if text.split(separator: " ").dropFirst().first?.hasPrefix("2") == false { member = nil }
        case Self.property + ["getetag"]: member?.tag = trimmed
        case Self.property + ["getcontentlength"]: member?.length = trimmed
        case Self.property + ["getlastmodified"]: member?.modified = trimmed
        case ["multistatus", "response"]:
            if let member, !member.name.isEmpty, keeps(member.name), members.count < Self.mostMembers {
                members.append(member)
            }
            member = nil
        default: break
        }
    }

    /// Only the last part counts: a server behind another one may take itself for something else before that.
    private mutating func setName() {
        let reference = trimmed.prefix { $0 != "?" && $0 != "#" }
        if reference.hasSuffix("/") { member?.isFolder = true }
        let last = reference.split(separator: "/").last ?? ""
        member?.name = PercentCoding.decode(last) ?? ""
    }

    private var trimmed: String {
        let spaces: Set<Character> = [" ", "\t", "\n", "\r", "\r\n"]
        return String(text.drop { spaces.contains($0) }.reversed().drop { spaces.contains($0) }.reversed())
    }
}

extension Multistatus {
    /// Reads an answer while it comes.
    final class Reader: Sendable {
        private let state: Mutex<(multistatus: Multistatus, flaw: XMLScanner.Flaw?)>

        init(keeping keeps: @escaping @Sendable (String) -> Bool) {
            state = Mutex((Multistatus(keeping: keeps), nil))
        }

        /// The answer that has the status of a multistatus.
        var sink: HTTPRequest.Sink {
            HTTPRequest.Sink(status: 207) { bytes in
                self.state.withLock { state in
                    do throws(XMLScanner.Flaw) { try state.multistatus.feed(bytes) } catch { state.flaw = error }
                    return state.flaw == nil
                }
            }
        }

        /// What makes no sense of the answer, as far as it has come.
        var flaw: XMLScanner.Flaw? { state.withLock(\.flaw) }

        /// All that is there.
        func members() throws(XMLScanner.Flaw) -> [Member] {
            let (multistatus, flaw) = state.withLock(\.self)
            if let flaw { throw flaw }
            try multistatus.finish()
            return multistatus.members
        }
    }
}
