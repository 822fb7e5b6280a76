// SPDX-License-Identifier: Apache-2.0

/// Type codes, as libsystemd takes them.
extension CChar {
    static let byte = CChar(UInt8(ascii: "y"))
    static let array = CChar(UInt8(ascii: "a"))
    static let string = CChar(UInt8(ascii: "s"))
    static let objectPath = CChar(UInt8(ascii: "o"))
    static let signature = CChar(UInt8(ascii: "g"))
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
