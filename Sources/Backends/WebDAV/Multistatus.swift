// SPDX-License-Identifier: Apache-2.0

internal import BackendSupport
internal import Blobs
internal import HTTPClient
internal import RemoteAddress
internal import Replication
internal import Synchronization

/// The list of a folder's members: the response to a PROPFIND (RFC 4918, 13), decoded as it arrives.
struct Multistatus {
    /// A file or folder.
    struct Member: Equatable {
        /// The last part of its address.
        var name = ""
        /// Whether it is a folder: its address ends with a slash, or its resource type says so.
        var isFolder = false
        /// The ETag. It, the length and the date change with the content, as far as the server has them.
        var tag: String?
        var length: String?
        var modified: String?
    }

    private(set) var members: [Member] = []
    private let scanner = XMLScanner()
    private var path: [String] = []
    private var member: Member?
    /// The properties in the present propstat, which count if its status is a success.
    private var said: Member?
    private var text = ""
    private var receivedBytes = 0
    private var keptBytes = 0
    private let keeps: (String) -> Bool

    private static let mostTextBytes = 8 << 10
    private let mostBytes: Int
    private let mostKeptBytes: Int

    /// - Parameters:
    ///   - keeps: whether to keep a member of this name.
    ///   - mostBytes: the limit of the response's length.
    ///   - mostKeptBytes: the limit of what is kept of it.
    init(
        keeping keeps: @escaping (String) -> Bool = { _ in true }, mostBytes: Int = 64 << 20,
        mostKeptBytes: Int = 16 << 20
    ) {
        (self.keeps, self.mostBytes, self.mostKeptBytes) = (keeps, mostBytes, mostKeptBytes)
    }

    mutating func feed(_ bytes: UnsafeRawBufferPointer) throws(XMLScanner.Flaw) {
        var events: [XMLScanner.Event] = []
        try scanner.feed(bytes) { events.append($0) }
        for event in events { take(event) }
        receivedBytes += bytes.count
        guard keptBytes <= mostKeptBytes, receivedBytes <= mostBytes else {
            throw XMLScanner.Flaw(clause: "it is longer than that of any account")
        }
    }

    /// About how many bytes of memory the members take.
    var bytes: Int { keptBytes + members.count * MemoryLayout<Member>.stride }

    func finish() throws(XMLScanner.Flaw) { try scanner.finish() }

    private mutating func take(_ event: XMLScanner.Event) {
        switch event {
        case .begin(let name, let isDAV):
            path.append(isDAV ? name : "")
            text = ""
            if path == ["multistatus", "response"] { member = Member() }
            if path == Self.propstat { said = Member() }
            if path == Self.property + ["resourcetype", "collection"] { said?.isFolder = true }
        case .text(let more):
            if text.utf8.count + more.utf8.count <= Self.mostTextBytes { text += more }
        case .end:
            end()
            path.removeLast()
        }
    }

    private static let propstat = ["multistatus", "response", "propstat"]
    private static let property = propstat + ["prop"]

    private mutating func end() {
        let value = trimmed.isEmpty ? nil : trimmed
        switch path {
        case ["multistatus", "response", "href"]: setName()
        // The member's own status: it is named, but not there.
        case ["multistatus", "response", "status"]: if isRefusal { member = nil }
        // Properties that the member lacks or hides are named too, and empty.
        case Self.propstat + ["status"]: if isRefusal { said = nil }
        case Self.property + ["getetag"]: said?.tag = value
        case Self.property + ["getcontentlength"]: said?.length = value
        case Self.property + ["getlastmodified"]: said?.modified = value
        case Self.propstat: takeSaid()
        case ["multistatus", "response"]: keep()
        default: break
        }
    }

    private var isRefusal: Bool {
        let status = text.utf8.split(separator: UInt8(ascii: " ")).dropFirst().first
        return status.map { $0.first != UInt8(ascii: "2") } ?? false
    }

    private mutating func takeSaid() {
        if let said, let known = member {
            member = Member(
                name: known.name, isFolder: said.isFolder || known.isFolder, tag: said.tag ?? known.tag,
                length: said.length ?? known.length, modified: said.modified ?? known.modified)
        }
        said = nil
    }

    private mutating func keep() {
        if let member, !member.name.isEmpty, keeps(member.name), members.count < BlobName.mostListed {
            members.append(member)
            let texts = [member.name, member.tag ?? "", member.length ?? "", member.modified ?? ""]
            keptBytes += texts.reduce(0) { $0 + $1.utf8.count }
        }
        member = nil
    }

    /// Takes the last part of the address alone: a server behind a proxy may put the wrong path before it. An encoded
    /// slash is in no name, and would lead to another folder.
    private mutating func setName() {
        let slash = UInt8(ascii: "/")
        let reference = trimmed.utf8.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
        if reference.last == slash { member?.isFolder = true }
        let name = reference.split(separator: slash).last.flatMap { PercentCoding.decode(Substring($0)) } ?? ""
        member?.name = name.utf8.contains(slash) ? "" : name
    }

    private var trimmed: String {
        let bytes = text.utf8
        guard let first = bytes.firstIndex(where: { !$0.isXMLSpace }),
            let last = bytes.lastIndex(where: { !$0.isXMLSpace })
        else { return "" }
        return String(Substring(bytes[first...last]))
    }
}

extension Multistatus {
    /// Decodes a response as it arrives, away from the thread that it arrives on, because that one answers all calls.
    final class Reader: Sendable {
        private let thread = WorkThread(.decoding)
        /// One piece of work at a time uses it.
        private let multistatus: Mutex<Multistatus>
        private let state = Mutex(State())
        private let share: RemoteBudget.Share

        private struct State {
            /// The size of what has arrived and is not decoded yet.
            var waitingBytes = 0
            var flaw: XMLScanner.Flaw?
            /// The error if the memory budget has no room for more.
            var refusal: RemoteError?
        }

        /// When more than this is waiting to be decoded, the server has to wait.
        private static let mostWaiting = 256 << 10
        /// The memory that a piece takes besides its bytes, since a server may send them one by one.
        private static let overhead = 256

        init(within budget: RemoteBudget, keeping keeps: @escaping @Sendable (String) -> Bool) {
            multistatus = Mutex(Multistatus(keeping: keeps))
            share = budget.share()
        }

        /// The sink of a response with the status of a multistatus.
        var sink: HTTPRequest.Sink {
            HTTPRequest.Sink(status: 207, isBusy: { self.state.withLock { $0.waitingBytes > Self.mostWaiting } }) {
                let piece = Array($0)
                let isGood = self.state.withLock { state in
                    state.waitingBytes += piece.count + Self.overhead
                    return state.flaw == nil && state.refusal == nil
                }
                if isGood { self.thread.run { self.read(piece) } }
                return isGood
            }
        }

        private func read(_ piece: [UInt8]) {
            let isOver = state.withLock { $0.flaw != nil || $0.refusal != nil }
            let (flaw, refusal) = isOver ? (nil, nil) : (feed(piece), hold())
            state.withLock { state in
                state.waitingBytes -= piece.count + Self.overhead
                state.flaw = state.flaw ?? flaw
                state.refusal = state.refusal ?? refusal
            }
        }

        private func hold() -> RemoteError? {
            let bytes = multistatus.withLock(\.bytes)
            do { try share.hold { $0.news = bytes } } catch { return error }
            return nil
        }

        private func feed(_ piece: [UInt8]) -> XMLScanner.Flaw? {
            multistatus.withLock { multistatus in
                piece.withUnsafeBytes { bytes in
                    do throws(XMLScanner.Flaw) { try multistatus.feed(bytes) } catch { return error }
                    return nil
                }
            }
        }

        /// What is wrong with the response, as far as it has arrived; `nil` if nothing is.
        var flaw: XMLScanner.Flaw? {
            get async {
                await thread.finish()
                return state.withLock(\.flaw)
            }
        }

        /// The error if the memory budget has no room for the response; `nil` if it has.
        var refusal: RemoteError? {
            get async {
                await thread.finish()
                return state.withLock(\.refusal)
            }
        }

        /// Returns all members, or throws the response's flaw.
        func members() async throws(XMLScanner.Flaw) -> [Member] {
            if let flaw = await flaw { throw flaw }
            return try multistatus.withLock { (multistatus) throws(XMLScanner.Flaw) in
                try multistatus.finish()
                return multistatus.members
            }
        }
    }
}
