// SPDX-License-Identifier: Apache-2.0

// As much of XML 1.0 and its namespaces as servers answer with, read as it comes. It takes the input for hostile:
// everything it holds is bounded, nothing is loaded from elsewhere, and a document type is refused, and with it every
// way to make much out of little.

/// Reads XML piece by piece and says what it found.
struct XMLScanner {
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

    private var pending: [UInt8] = []
    /// How much of ``pending`` is known not to end what it begins with.
    private var searched = 0
    /// Of each open element the prefixes that it declared, and its name as it was written.
    private var open: [(name: String, prefixes: [String: Bool])] = []
    private var isEnded = false

    private static let mostTokenBytes = 64 << 10
    private static let mostDepth = 32
    private static let mostPrefixes = 32

    init() {}

    /// Takes the next bytes.
    mutating func feed(_ bytes: UnsafeRawBufferPointer, _ handle: (Event) -> Void) throws(Flaw) {
        pending += bytes
        var start = 0
        while start < pending.count, let end = try tokenEnd(from: start) {
            try take(pending[start..<end], handle)
            start = end
            searched = 0
        }
        pending.removeFirst(start)
        if pending.count > Self.mostTokenBytes { throw Flaw(clause: "a piece of it has no end") }
    }

    /// All has come.
    func finish() throws(Flaw) {
        guard isEnded, pending.allSatisfy(\.isXMLSpace) else { throw Flaw(clause: "it ends too early") }
    }

    // MARK: Tokens

    private static let comment = (Array("<!--".utf8), Array("-->".utf8))
    private static let characters = (Array("<![CDATA[".utf8), Array("]]>".utf8))
    private static let instruction = (Array("<?".utf8), Array("?>".utf8))

    /// Where the token that begins at `start` ends; `nil` if that has not come yet.
    private mutating func tokenEnd(from start: Int) throws(Flaw) -> Int? {
        let rest = pending[start...]
        guard rest.first == UInt8(ascii: "<") else {
            // Text is worth taking only up to what ends it: a reference may be cut in two.
            return rest.firstIndex(of: UInt8(ascii: "<"))
        }
        for (opening, closing) in [Self.comment, Self.characters, Self.instruction] where rest.starts(with: opening) {
            return search(closing, from: start + opening.count)
        }
        let isUndecided = rest.count < 9 && [Self.comment.0, Self.characters.0].contains { $0.starts(with: rest) }
        if isUndecided { return nil }
        if rest.dropFirst().first == UInt8(ascii: "!") { throw Flaw(clause: "it has a document type") }
        return tagEnd(from: start)
    }

    private mutating func search(_ closing: [UInt8], from start: Int) -> Int? {
        let from = max(start, searched - closing.count)
        if from < pending.count, let range = pending[from...].firstRange(of: closing) { return range.upperBound }
        searched = pending.count
        return nil
    }

    private func tagEnd(from start: Int) -> Int? {
        var quote: UInt8?
        for index in start..<pending.count {
            let byte = pending[index]
            if let open = quote {
                if byte == open { quote = nil }
            } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
                quote = byte
            } else if byte == UInt8(ascii: ">") {
                return index + 1
            }
        }
        return nil
    }

    private mutating func take(_ token: ArraySlice<UInt8>, _ handle: (Event) -> Void) throws(Flaw) {
        guard token.first == UInt8(ascii: "<") else {
            if open.isEmpty {
                guard token.drop(while: \.isXMLSpace).isEmpty || token.starts(with: [0xEF, 0xBB, 0xBF]) else {
                    throw Flaw(clause: "it is no XML")
                }
                return
            }
            return handle(.text(try Self.resolve(token)))
        }
        if token.starts(with: Self.comment.0) || token.starts(with: Self.instruction.0) { return }
        if token.starts(with: Self.characters.0) {
            guard !open.isEmpty else { throw Flaw(clause: "it is no XML") }
            return handle(.text(String(decoding: token.dropFirst(9).dropLast(3), as: UTF8.self)))
        }
        try takeTag(token.dropFirst().dropLast(), handle)
    }

    // MARK: Tags

    private mutating func takeTag(_ tag: ArraySlice<UInt8>, _ handle: (Event) -> Void) throws(Flaw) {
        if tag.first == UInt8(ascii: "/") {
            let name = String(decoding: tag.dropFirst().prefix { !$0.isXMLSpace }, as: UTF8.self)
            guard open.popLast()?.name == name else { throw Flaw(clause: "its elements don't match") }
            if open.isEmpty { isEnded = true }
            return handle(.end)
        }
        let isEmpty = tag.last == UInt8(ascii: "/")
        var rest = isEmpty ? tag.dropLast() : tag
        let name = String(decoding: Self.takeName(&rest), as: UTF8.self)
        guard !name.isEmpty, open.count < Self.mostDepth, !isEnded else { throw Flaw(clause: "it is no XML") }
        open.append((name, try Self.declaredPrefixes(&rest)))
        let parts = name.split(separator: ":", maxSplits: 1).map(String.init)
        let (prefix, local) = parts.count == 2 ? (parts[0], parts[1]) : ("", name)
        handle(.begin(local, isDAV: isDAV(prefix)))
        guard isEmpty else { return }
        open.removeLast()
        if open.isEmpty { isEnded = true }
        handle(.end)
    }

    private func isDAV(_ prefix: String) -> Bool {
        for element in open.reversed() {
            if let isDAV = element.prefixes[prefix] { return isDAV }
        }
        return false
    }

    private static func takeName(_ rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let name = rest.prefix { !$0.isXMLSpace && $0 != UInt8(ascii: "=") }
        rest = rest.dropFirst(name.count)
        return name
    }

    /// Goes through the attributes for those that declare a prefix.
    /// - Returns: of each prefix, the empty one included, whether it is that of `DAV:`.
    private static func declaredPrefixes(_ rest: inout ArraySlice<UInt8>) throws(Flaw) -> [String: Bool] {
        var prefixes: [String: Bool] = [:]
        while true {
            rest = rest.drop(while: \.isXMLSpace)
            if rest.isEmpty { return prefixes }
            let name = String(decoding: takeName(&rest), as: UTF8.self)
            rest = rest.drop(while: \.isXMLSpace)
            guard rest.popFirst() == UInt8(ascii: "=") else { throw Flaw(clause: "an attribute has no value") }
            rest = rest.drop(while: \.isXMLSpace)
            guard let quote = rest.popFirst(), let end = rest.firstIndex(of: quote) else {
                throw Flaw(clause: "an attribute has no value")
            }
            let value = rest[..<end]
            rest = rest[(end + 1)...]
            guard name == "xmlns" || name.hasPrefix("xmlns:") else { continue }
            prefixes[String(name.dropFirst(6))] = try resolve(value) == "DAV:"
            if prefixes.count > mostPrefixes { throw Flaw(clause: "it has too many namespaces") }
        }
    }

    // MARK: Text

    private static let entities = ["amp": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'"]

    /// Puts characters in the place of references to them.
    private static func resolve(_ text: ArraySlice<UInt8>) throws(Flaw) -> String {
        guard text.contains(UInt8(ascii: "&")) else { return String(decoding: text, as: UTF8.self) }
        var (resolved, rest) = ("", text)
        while let ampersand = rest.firstIndex(of: UInt8(ascii: "&")) {
            resolved += String(decoding: rest[..<ampersand], as: UTF8.self)
            rest = rest[(ampersand + 1)...]
            guard let end = rest.prefix(12).firstIndex(of: UInt8(ascii: ";")),
                let character = character(String(decoding: rest[..<end], as: UTF8.self))
            else { throw Flaw(clause: "it refers to something that it does not say") }
            resolved += character
            rest = rest[(end + 1)...]
        }
        return resolved + String(decoding: rest, as: UTF8.self)
    }

    private static func character(_ reference: String) -> String? {
        guard reference.hasPrefix("#") else { return entities[reference] }
        let isHexadecimal = reference.dropFirst().hasPrefix("x")
        let digits = reference.dropFirst(isHexadecimal ? 2 : 1)
        guard let number = UInt32(digits, radix: isHexadecimal ? 16 : 10), number > 0 else { return nil }
        return Unicode.Scalar(number).map { String($0) }
    }
}

extension UInt8 {
    var isXMLSpace: Bool { [0x20, 0x09, 0x0A, 0x0D].contains(self) }
}
