// SPDX-License-Identifier: Apache-2.0

// What servers answer is read by expat as it comes. The input is taken for hostile: the depth, the namespaces and what
// expat keeps of a token are bounded, nothing is loaded from elsewhere, and a document type is refused, and with it every
// way to make much out of little.

internal import CExpat
internal import Glibc

/// Reads XML piece by piece and says what it found.
///
/// The corresponding C type is ``XML_Parser``.
final class XMLScanner {
    /// What was found.
    enum Event: Equatable {
        /// An element begins, in the namespace `DAV:` or not.
        case begin(String, isDAV: Bool)
        /// The innermost element ends.
        case end
        /// Text, perhaps not all of it.
        case text(String)
    }

    /// It is no XML, or more than a server has reason to send; with a clause that says what.
    struct Flaw: Error, Equatable { let clause: String }

    private let parser: XML_Parser?
    /// What was found in the piece that is being read.
    private var events: [Event] = []
    private var flaw: Flaw?
    private var depth = 0
    private var namespaces = 0
    private var receivedBytes = 0

    private static let mostTokenBytes = 64 << 10
    private static let mostDepth = 32
    private static let mostNamespaces = 64
    /// expat writes it before the name of each element and each attribute in it, of which four bytes may make one.
    private static let longestNamespace = 256
    /// Stands between a namespace and a name. Neither can have it.
    private static let separator = UInt8(ascii: "\n")

    init() {
        parser = XML_ParserCreateNS(nil, XML_Char(Self.separator))
        XML_SetUserData(parser, Unmanaged.passUnretained(self).toOpaque())
        XML_SetElementHandler(
            parser, { object, name, _ in XMLScanner.call(object, name) { $0.begin($1) } },
            { object, _ in XMLScanner.call(object) { $0.end() } })
        XML_SetCharacterDataHandler(parser) { object, text, count in
            let bytes = UnsafeRawBufferPointer(start: text, count: Int(count))
            XMLScanner.call(object) { $0.events.append(.text(String(decoding: bytes, as: UTF8.self))) }
        }
        XML_SetNamespaceDeclHandler(
            parser, { object, _, name in XMLScanner.call(object) { $0.declare(name.map(strlen) ?? 0) } },
            { object, _ in XMLScanner.call(object) { $0.namespaces -= 1 } })
        XML_SetStartDoctypeDeclHandler(parser) { object, _, _, _, _ in
            XMLScanner.call(object) { $0.stop("it has a document type") }
        }
    }

    deinit { XML_ParserFree(parser) }

    /// Takes the next bytes, and passes on what was found in them.
    func feed(_ bytes: UnsafeRawBufferPointer, _ handle: (Event) -> Void) throws(Flaw) {
        receivedBytes += bytes.count
        try parse(bytes, isLast: false)
        for event in events { handle(event) }
        events = []
        if receivedBytes - Int(XML_GetCurrentByteIndex(parser)) > Self.mostTokenBytes {
            throw Flaw(clause: "a piece of it has no end")
        }
    }

    /// All has come.
    func finish() throws(Flaw) {
        try parse(UnsafeRawBufferPointer(start: nil, count: 0), isLast: true)
    }

    private func parse(_ bytes: UnsafeRawBufferPointer, isLast: Bool) throws(Flaw) {
        let text = bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
        guard let parser, let count = Int32(exactly: bytes.count) else { throw Flaw(clause: "it is too much at once") }
        let status = XML_Parse(parser, text, count, isLast ? 1 : 0)
        if let flaw { throw flaw }
        if status != XML_STATUS_OK {
            let reason = XML_ErrorString(XML_GetErrorCode(parser)).map { String(cString: $0) }
            throw Flaw(clause: "it is no XML (\(reason ?? "without a reason"))")
        }
    }

    // MARK: What expat finds

    private static func call(_ object: UnsafeMutableRawPointer?, _ body: (XMLScanner) -> Void) {
        guard let object else { return }
        body(Unmanaged<XMLScanner>.fromOpaque(object).takeUnretainedValue())
    }

    private static func call(
        _ object: UnsafeMutableRawPointer?, _ name: UnsafePointer<XML_Char>?, _ body: (XMLScanner, String) -> Void
    ) {
        guard let name else { return }
        call(object) { body($0, String(cString: name)) }
    }

    private func begin(_ name: String) {
        depth += 1
        if depth > Self.mostDepth { return stop("its elements are nested too deep") }
        let parts = name.utf8.split(separator: Self.separator, maxSplits: 1, omittingEmptySubsequences: false)
        let isDAV = parts.count == 2 && parts[0].elementsEqual("DAV:".utf8)
        events.append(.begin(String(Substring(parts[parts.count - 1])), isDAV: isDAV))
    }

    private func end() {
        depth -= 1
        events.append(.end)
    }

    /// A namespace of so many bytes is declared.
    private func declare(_ length: Int) {
        namespaces += 1
        if namespaces > Self.mostNamespaces { stop("it has too many namespaces") }
        if length > Self.longestNamespace { stop("the name of a namespace is too long") }
    }

    private func stop(_ clause: String) {
        flaw = flaw ?? Flaw(clause: clause)
        _ = XML_StopParser(parser, 0)
    }
}

extension UInt8 {
    var isXMLSpace: Bool { [0x20, 0x09, 0x0A, 0x0D].contains(self) }
}
