// SPDX-License-Identifier: Apache-2.0

internal import PropertyList

/// Reads Apple's binary property lists; their format is described in CFBinaryPList.c of swift-corelibs-foundation.
///
/// The objects form a table, and containers refer to them by number. An object with two references is read twice, so a
/// few hundred hostile bytes could fill the memory; a budget therefore limits what is read in total. Writers share
/// equal strings and numbers, but no containers, so a legitimate file has no more values than bytes.
struct BinaryReader {
    private static let trailerSize = 32
    private static let costOfObject = 16

    private let bytes: [UInt8]
    private let count: Int
    private let offsets: Int
    private let offsetWidth: Int
    private let width: Int
    /// How many objects, at ``costOfObject``, and how many bytes of strings and data may still be read.
    private var budget: (objects: Int, bytes: Int)
    /// Whether UIDs are read, as integers.
    private var readsReferences = false

    /// - Parameter isArchive: whether to read UIDs as integers. NSKeyedArchiver refers to objects with them; property
    ///   lists of other programs have none.
    static func read(_ bytes: [UInt8], isArchive: Bool = false) throws(FileError) -> Value {
        var (reader, top) = try open(bytes)
        reader.readsReferences = isArchive
        return try reader.value(top, nesting: 0, at: bytes.count - trailerSize + 16)
    }

    private static func open(_ bytes: [UInt8]) throws(FileError) -> (BinaryReader, top: Int) {
        let trailer = bytes.count - trailerSize
        guard bytes.starts(with: "bplist0".utf8), trailer >= 8 else {
            throw FileError(place: .byte(bytes.count), reason: "the file was cut short, or is of an unknown version")
        }
        let (offsetWidth, width) = (Int(bytes[trailer + 6]), Int(bytes[trailer + 7]))
        guard (1...8).contains(offsetWidth), (1...8).contains(width),
            let count = number(bytes, trailer + 8, 8), let top = number(bytes, trailer + 16, 8),
            let offsets = number(bytes, trailer + 24, 8), count <= trailer, top < count,
            offsets <= trailer, offsets + count * offsetWidth <= trailer
        else { throw FileError(place: .byte(trailer), reason: "the trailer makes no sense; the file was cut short") }
        let reader = BinaryReader(
            bytes: bytes, count: count, offsets: offsets, offsetWidth: offsetWidth, width: width,
            // Shared strings can total more bytes than the file has, and a small file may repeat a long one.
            budget: (costOfObject * bytes.count + (1 << 16), costOfObject * bytes.count + (4 << 20)))
        return (reader, top)
    }

    // MARK: Objects

    private mutating func value(_ object: Int, nesting: Int, at reference: Int) throws(FileError) -> Value {
        guard object < count,
            let start = Self.number(bytes, offsets + object * offsetWidth, offsetWidth), start < offsets
        else { throw failure(reference, "this refers to an object that isn't there") }
        try Self.spend(&budget.objects, Self.costOfObject, start)
        let marker = bytes[start]
        switch marker & 0xF0 {
        case 0x00: return try boolean(marker, start)
        case 0x10: return .integer(try integer(marker, start))
        case 0x20, 0x30: return try real(marker, start)
        case 0x40: return .data(Array(try content(start, 1)))
        case 0x50: return try ascii(start)
        case 0x60: return try utf16(start)
        case 0x80 where readsReferences: return .integer(try uid(marker, start))
        case 0xA0, 0xD0:
            guard nesting < deepestNesting else {
                throw failure(start, "containers are nested more than \(deepestNesting) deep")
            }
            return marker < 0xD0
                ? .array(try array(start, nesting: nesting + 1))
                : .dictionary(try dictionary(start, nesting: nesting + 1))
        default: throw unknown(marker, start)
        }
    }

    private static let tooLarge = "an integer is too large; 9223372036854775807 is the largest"

    private func boolean(_ marker: UInt8, _ start: Int) throws(FileError) -> Value {
        guard marker == 0x08 || marker == 0x09 else { throw unknown(marker, start) }
        return .boolean(marker == 0x09)
    }

    private func integer(_ marker: UInt8, _ start: Int) throws(FileError) -> Int64 {
        // Writers use sixteen bytes for integers beyond signed 64 bits, and Swift's encoder for each UInt64.
        let size = 1 << Int(marker & 0x0F)
        guard size <= 16 else { throw failure(start, Self.tooLarge) }
        guard start + 1 + size <= offsets else { throw cut(start) }
        let content = bytes[(start + 1)..<(start + 1 + size)]
        let number = Int64(bitPattern: content.reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
        guard content.dropLast(8).allSatisfy({ $0 == (number < 0 ? 0xFF : 0) }) else {
            throw failure(start, Self.tooLarge)
        }
        return number
    }

    /// Reads a UID: one byte more than the marker says, 32 bits at most.
    private func uid(_ marker: UInt8, _ start: Int) throws(FileError) -> Int64 {
        guard let number = Self.number(bytes, start + 1, Int(marker & 0x0F) + 1) else { throw cut(start) }
        return Int64(number)
    }

    private func real(_ marker: UInt8, _ start: Int) throws(FileError) -> Value {
        guard marker == 0x22 || marker == 0x23 || marker == 0x33 else { throw unknown(marker, start) }
        let size = marker == 0x22 ? 4 : 8
        guard start + 1 + size <= offsets else { throw cut(start) }
        let bits = bytes[(start + 1)..<(start + 1 + size)].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        if marker == 0x22 { return .real(Double(Float(bitPattern: UInt32(truncatingIfNeeded: bits)))) }
        let number = Double(bitPattern: bits)
        if marker == 0x23 { return .real(number) }
        guard number.isFinite else { throw failure(start, "the date is not a finite number of seconds") }
        return .date(number)
    }

    private mutating func ascii(_ start: Int) throws(FileError) -> Value {
        let content = try content(start, 1)
        guard content.allSatisfy({ $0 < 0x80 }) else { throw failure(start, "the string isn't ASCII, as it says") }
        return .string(Text(String(decoding: content, as: UTF8.self)))
    }

    private mutating func utf16(_ start: Int) throws(FileError) -> Value {
        let content = Array(try content(start, 2))
        let units = stride(from: 0, to: content.count, by: 2).map { UInt16(content[$0]) << 8 | UInt16(content[$0 + 1]) }
        guard let string = String(validating: units, as: UTF16.self) else {
            throw failure(start, "the string has half of a surrogate pair")
        }
        return .string(Text(string))
    }

    private mutating func array(_ start: Int, nesting: Int) throws(FileError) -> [Value] {
        let (size, first) = try extent(start, elementWidth: width)
        var values: [Value] = []
        for index in 0..<size {
            values.append(try referred(first + index * width, nesting: nesting))
        }
        return values
    }

    private mutating func dictionary(_ start: Int, nesting: Int) throws(FileError) -> [Text: Value] {
        let (size, first) = try extent(start, elementWidth: 2 * width)
        var values: [Text: Value] = [:]
        for index in 0..<size {
            let place = first + index * width
            guard case .string(let key) = try referred(place, nesting: nesting) else {
                throw failure(place, "the key of a dictionary is not a string")
            }
            let value = try referred(place + size * width, nesting: nesting)
            guard values.updateValue(value, forKey: key) == nil else {
                throw failure(place, "the key \"\(key)\" comes twice")
            }
        }
        return values
    }

    private mutating func referred(_ place: Int, nesting: Int) throws(FileError) -> Value {
        try value(Self.number(bytes, place, width) ?? count, nesting: nesting, at: place)
    }

    // MARK: Bytes

    private mutating func content(_ start: Int, _ elementWidth: Int) throws(FileError) -> ArraySlice<UInt8> {
        let (size, first) = try extent(start, elementWidth: elementWidth)
        try Self.spend(&budget.bytes, size * elementWidth, start)
        return bytes[first..<first + size * elementWidth]
    }

    /// Returns the number of an object's elements, and where they begin.
    private func extent(_ start: Int, elementWidth: Int) throws(FileError) -> (size: Int, first: Int) {
        var (size, first) = (Int(bytes[start] & 0x0F), start + 1)
        if size == 0x0F {
            guard first < offsets, bytes[first] & 0xF0 == 0x10, bytes[first] & 0x0F <= 3 else { throw cut(start) }
            let sizeWidth = 1 << Int(bytes[first] & 0x0F)
            guard let number = Self.number(bytes, first + 1, sizeWidth) else { throw cut(start) }
            (size, first) = (number, first + 1 + sizeWidth)
        }
        guard size <= offsets, first + size * elementWidth <= offsets else { throw cut(start) }
        return (size, first)
    }

    private static func spend(_ rest: inout Int, _ amount: Int, _ start: Int) throws(FileError) {
        rest -= amount
        if rest < 0 {
            throw FileError(
                place: .byte(start),
                reason: "the file refers to its objects so often that it is far larger than it is")
        }
    }

    private static func number(_ bytes: [UInt8], _ start: Int, _ width: Int) -> Int? {
        guard start >= 0, start + width <= bytes.count else { return nil }
        let number = bytes[start..<start + width].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return number < 1 << 32 ? Int(number) : nil
    }

    // MARK: Errors

    private func failure(_ offset: Int, _ reason: String) -> FileError {
        FileError(place: .byte(offset), reason: reason)
    }

    private func cut(_ start: Int) -> FileError { failure(start, "this object is longer than the file") }

    private func unknown(_ marker: UInt8, _ start: Int) -> FileError {
        failure(start, "an object of the type 0x\(String(marker, radix: 16)) is none that a store can hold")
    }
}
