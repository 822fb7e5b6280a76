// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Type codes, as libsystemd takes them.
extension CChar {
    static let byte = CChar(UInt8(ascii: "y"))
    static let array = CChar(UInt8(ascii: "a"))
    static let string = CChar(UInt8(ascii: "s"))
    static let objectPath = CChar(UInt8(ascii: "o"))
    static let signature = CChar(UInt8(ascii: "g"))

    /// Returns the type of an array's elements and the width of each in bytes, if they are numbers; `nil` if not.
    /// Booleans don't count, because libsystemd doesn't read arrays of them at once.
    static func number(in contents: UnsafePointer<CChar>) -> (type: CChar, width: Int)? {
        guard strlen(contents) == 1 else { return nil }
        let width: Int? =
            switch UInt8(bitPattern: contents.pointee) {
            case UInt8(ascii: "y"): 1
            case UInt8(ascii: "n"), UInt8(ascii: "q"): 2
            case UInt8(ascii: "i"), UInt8(ascii: "u"): 4
            case UInt8(ascii: "x"), UInt8(ascii: "t"), UInt8(ascii: "d"): 8
            default: nil
            }
        return width.map { (contents.pointee, $0) }
    }
}

extension Unicode.Scalar {
    /// The type code; 0, which libsystemd refuses, if the scalar can't be one.
    var code: CChar { isASCII ? CChar(truncatingIfNeeded: value) : 0 }
}

extension StaticString {
    /// The string for C, which lives as long as the process.
    var cString: UnsafePointer<CChar> {
        UnsafeRawPointer(utf8Start).assumingMemoryBound(to: CChar.self)
    }
}
