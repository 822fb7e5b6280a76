// SPDX-License-Identifier: Apache-2.0

internal import BackendSupport
internal import Blobs
internal import HTTPClient
internal import PlaceAddress
internal import Replication
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
    private let scanner = XMLScanner()
    private var path: [String] = []
    private var member: Member?
    /// What a propstat says of the member, if it turns out to be so.
    private var said: Member?
    private var text = ""
    private var receivedBytes = 0
    private var keptBytes = 0
    private let keeps: (String) -> Bool

    private static let mostTextBytes = 8 << 10
    private let mostBytes: Int
    private let mostKeptBytes: Int

    /// - Parameters:
    ///   - keeps: whether a name is worth remembering.
    ///   - mostBytes: as long may the answer be; more is refused.
    ///   - mostKeptBytes: so much of it may be worth remembering.
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

    /// What is kept takes so much, about.
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
        // Of itself: a member that is named and not there.
        case ["multistatus", "response", "status"]: if isRefusal { member = nil }
        // What it has not, or does not tell, is named too, and empty.
        case Self.propstat + ["status"]: if isRefusal { said = nil }
        case Self.property + ["getetag"]: said?.tag = value
        case Self.property + ["getcontentlength"]: said?.length = value
        case Self.property + ["getlastmodified"]: said?.modified = value
        case Self.propstat: takeSaid()
        case ["multistatus", "response"]: keep()
        default: break
        }
    }

    private var isRefusal: Bool { text.split(separator: " ").dropFirst().first?.hasPrefix("2") == false }

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

    /// Only the last part counts: a server behind another one may take itself for something else before that.
    private mutating func setName() {
        let reference = trimmed.prefix { $0 != "?" && $0 != "#" }
        if reference.hasSuffix("/") { member?.isFolder = true }
        let last = reference.split(separator: "/").last ?? ""
        member?.name = PercentCoding.decode(last) ?? ""
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
    /// Reads an answer while it comes, away from the thread on which it comes: that one answers everybody's calls.
    final class Reader: Sendable {
        private let thread = WorkThread(.decoding)
        /// Taken by one piece of work at a time.
        private let multistatus: Mutex<Multistatus>
        private let state = Mutex(State())
        private let share: RemoteBudget.Share

        private struct State {
            /// What has come and is not read yet takes so much.
            var waitingBytes = 0
            var flaw: XMLScanner.Flaw?
            /// There is no memory for more.
            var refusal: RemoteError?
        }

        /// When so much waits, the server waits as well.
        private static let mostWaiting = 256 << 10
        /// What a piece takes beside its bytes: a server may send them one by one.
        private static let overhead = 256

        init(within budget: RemoteBudget, keeping keeps: @escaping @Sendable (String) -> Bool) {
            multistatus = Mutex(Multistatus(keeping: keeps))
            share = budget.share()
        }

        /// The answer that has the status of a multistatus.
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

        /// What makes no sense of the answer, as far as it has come.
        var flaw: XMLScanner.Flaw? {
            get async {
                await thread.finish()
                return state.withLock(\.flaw)
            }
        }

        /// Why the answer is not read on, if there is no memory for it.
        var refusal: RemoteError? {
            get async {
                await thread.finish()
                return state.withLock(\.refusal)
            }
        }

        /// All that is there.
        func members() async throws(XMLScanner.Flaw) -> [Member] {
            if let flaw = await flaw { throw flaw }
            return try multistatus.withLock { (multistatus) throws(XMLScanner.Flaw) in
                try multistatus.finish()
                return multistatus.members
            }
        }
    }
}
