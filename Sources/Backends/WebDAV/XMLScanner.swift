// SPDX-License-Identifier: Apache-2.0

// expat parses responses as they arrive. The input is considered hostile: depth, namespaces, the length of a token and
// expat's memory are bounded, nothing external is loaded, and a document type is refused, and with it all entities that
// expand to much more than their text.

internal import CExpat
internal import Glibc

/// Parses XML piece by piece, and reports what it finds.
///
/// The corresponding C type is ``XML_Parser``.
final class XMLScanner {
    /// What the parser has found.
    enum Event: Equatable {
        /// The start of an element, in the namespace `DAV:` or another.
        case begin(String, isDAV: Bool)
        /// The end of the innermost element.
        case end
        /// Text, or a part of it.
        case text(String)
    }

    /// The input is not XML, or more than a server has reason to send; a clause says which.
    struct Flaw: Error, Equatable { let clause: String }

    private let parser: XML_Parser?
    private let memory = UnsafeMutablePointer<shim_memory>.allocate(capacity: 1)
    /// What was found in the present piece.
    private var events: [Event] = []
    private var flaw: Flaw?
    private var depth = 0
    private var namespaces = 0
    private var receivedBytes = 0

    private static let mostTokenBytes = 64 << 10
    /// The most memory that expat takes, in bytes. It keeps all names of elements, attributes and prefixes, of which
    /// servers use some dozens, and holds a few tokens.
    private static let mostMemory = 2 << 20
    private static let mostDepth = 32
    private static let mostNamespaces = 64
    /// The most bytes of a namespace. expat puts it before every name in it, and four bytes of input can make a name.
    private static let longestNamespace = 256
    /// Separates a namespace from a name. Neither can contain it.
    private static let separator = UInt8(ascii: "\n")

    init() {
        memory.initialize(to: shim_memory(used: 0, most: Self.mostMemory))
        parser = shim_create(memory, XML_Char(Self.separator))
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

    deinit {
        shim_free(parser, memory)
        memory.deallocate()
    }

    /// Parses the next bytes, and passes on what it finds.
    func feed(_ bytes: UnsafeRawBufferPointer, _ handle: (Event) -> Void) throws(Flaw) {
        receivedBytes += bytes.count
        try parse(bytes, isLast: false)
        for event in events { handle(event) }
        events = []
        if receivedBytes - Int(XML_GetCurrentByteIndex(parser)) > Self.mostTokenBytes {
            throw Flaw(clause: "a piece of it has no end")
        }
    }

    /// Ends the input.
    func finish() throws(Flaw) {
        try parse(UnsafeRawBufferPointer(start: nil, count: 0), isLast: true)
    }

    private func parse(_ bytes: UnsafeRawBufferPointer, isLast: Bool) throws(Flaw) {
        let text = bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
        guard let parser, let count = Int32(exactly: bytes.count) else { throw Flaw(clause: "it is too much at once") }
        let status = shim_parse(parser, memory, text, count, isLast ? 1 : 0)
        if let flaw { throw flaw }
        if status == XML_STATUS_OK { return }
        let code = XML_GetErrorCode(parser)
        if code == XML_ERROR_NO_MEMORY { throw Flaw(clause: "it has too many different names") }
        let reason = XML_ErrorString(code).map { String(cString: $0) }
        throw Flaw(clause: "it is not XML (\(reason ?? "without a reason"))")
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

    /// Notes the declaration of a namespace, whose name has `length` bytes.
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
