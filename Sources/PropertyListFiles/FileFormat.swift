// SPDX-License-Identifier: Apache-2.0

// Property lists as files. Every format preserves every value bit by bit, except that XML can't hold control
// characters. Foundation can't do this: it treats canonically equivalent keys as one key, rounds dates in XML to
// seconds, and doesn't report the column of an error.

package import PropertyList

/// A format of property-list files.
package enum FileFormat: String, CaseIterable, Sendable {
    /// Apple's XML property list, version 1.0.
    case xml
    /// Apple's binary property list, version 00.
    case binary
    /// JSON (RFC 8259). Objects with one key represent types that JSON lacks; see ``JSONTag``.
    case json

    /// Detects the format from a file's first bytes. Anything but Apple's property lists counts as JSON.
    package init(of bytes: [UInt8]) {
        if bytes.starts(with: "bplist".utf8) {
            self = .binary
        } else {
            let start = bytes.first { !" \t\r\n\u{FEFF}".utf8.contains($0) }
            self = start == UInt8(ascii: "<") ? .xml : .json
        }
    }

    /// Reads a file of this format.
    ///
    /// It makes hardly more values than there are bytes, and nests them at most 64 deep, whatever the input.
    package func read(_ bytes: [UInt8]) throws(FileError) -> Value {
        switch self {
        case .xml: try XMLReader.read(bytes)
        case .binary: try BinaryReader.read(bytes)
        case .json: try JSONReader.read(bytes)
        }
    }

    /// Writes a file of this format, with dictionaries sorted by the bytes of their keys.
    ///
    /// - Throws: for XML, if a string has a control character, which XML 1.0 can't hold.
    package func write(_ value: Value) throws(UnwritableText) -> [UInt8] {
        switch self {
        case .xml: try XMLWriter.write(value)
        case .binary: BinaryWriter.write(value)
        case .json: Array((JSONWriter.write(value, indented: true) + "\n").utf8)
        }
    }
}

/// The binary property list of an NSKeyedArchiver: a table of objects that refer to each other by their numbers.
package struct KeyedArchive {
    private let objects: [Value]
    /// The object that was archived under the key `root`; `nil` if there is none.
    package var root: [Text: Value]? { object(top["root"]) }
    private let top: [Text: Value]

    /// Reads an archive.
    /// - Returns: `nil` if the bytes aren't one.
    package init?(_ bytes: [UInt8]) {
        guard case .dictionary(let archive)? = try? BinaryReader.read(bytes, isArchive: true),
            case .array(let objects)? = archive["$objects"], case .dictionary(let top)? = archive["$top"]
        else { return nil }
        (self.objects, self.top) = (objects, top)
    }

    /// Returns the members of the object that a reference leads to; `nil` if there is none.
    package func object(_ reference: Value?) -> [Text: Value]? {
        if case .dictionary(let members)? = value(reference) { members } else { nil }
    }

    /// Returns the string that a reference leads to; `nil` if there is none.
    package func string(_ reference: Value?) -> String? {
        if case .string(let text)? = value(reference) { text.string } else { nil }
    }

    /// Returns the name of an object's class; `nil` if there is none.
    package func className(of object: [Text: Value]) -> String? {
        guard case .string(let name)? = self.object(object["$class"])?["$classname"] else { return nil }
        return name.string
    }

    private func value(_ reference: Value?) -> Value? {
        guard case .integer(let number)? = reference, let index = Int(exactly: number), objects.indices.contains(index)
        else { return nil }
        return objects[index]
    }
}

/// A string with a character that XML can't hold.
package struct UnwritableText: Error, Hashable, CustomStringConvertible {
    /// The character.
    package let scalar: Unicode.Scalar
    /// The outermost dictionary's key in which, or in whose value, it is; `nil` if the value is no dictionary.
    package let key: Text?

    /// A clause that says what is wrong and what to do.
    package var description: String {
        let hexadecimal = String(scalar.value, radix: 16, uppercase: true)
        let code = String(repeating: "0", count: max(0, 4 - hexadecimal.count)) + hexadecimal
        guard let key else {
            return "a string has the control character U+\(code), which XML can't hold; use binary or JSON"
        }
        return """
            the key "\(key)" or its value has the control character U+\(code), which XML can't hold; use binary or JSON
            """
    }
}

/// Why a file can't be read, and where.
package struct FileError: Error, Hashable, CustomStringConvertible {
    /// A place in a file.
    package enum Place: Hashable, Sendable {
        /// In a text, both counted from 1, the column in Unicode characters.
        case text(line: Int, column: Int)
        /// In a binary file, counted from 0.
        case byte(Int)
    }

    /// Where reading stopped.
    package let place: Place
    /// What was wrong there, in words.
    package let reason: String

    /// The place and the reason.
    package var description: String {
        switch place {
        case .text(let line, let column): "line \(line), column \(column): \(reason)"
        case .byte(let offset): "byte \(offset): \(reason)"
        }
    }
}

/// The deepest nesting that is read: deeper than any store allows, and far from exhausting the stack.
let deepestNesting = 64
