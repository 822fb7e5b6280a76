// SPDX-License-Identifier: Apache-2.0

internal import PropertyList

/// Writes Apple's binary property lists; their format is described in CFBinaryPList.c of swift-corelibs-foundation.
struct BinaryWriter {
    private var bytes = Array("bplist00".utf8)
    private var offsets: [Int] = []
    /// The number of bytes of a reference to an object.
    private let width: Int

    static func write(_ value: Value) -> [UInt8] {
        let count = count(value)
        let width = count < 1 << 8 ? 1 : count < 1 << 16 ? 2 : 4
        var writer = BinaryWriter(width: width)
        let top = writer.write(value)
        writer.finish(top: top)
        return writer.bytes
    }

    private init(width: Int) { self.width = width }

    private static func count(_ value: Value) -> Int {
        switch value {
        case .array(let values): values.reduce(1) { $0 + count($1) }
        case .dictionary(let values): values.values.reduce(1) { $0 + 1 + count($1) }
        default: 1
        }
    }

    /// Writes an object after the objects that it refers to.
    /// - Returns: its number.
    private mutating func write(_ value: Value) -> Int {
        switch value {
        case .array(let values):
            let references = values.map { write($0) }
            begin(0xA0, count: references.count)
            for reference in references { append(reference, width) }
        case .dictionary(let values):
            let entries = values.sorted { $0.key < $1.key }
            let references = entries.map { write(.string($0.key)) } + entries.map { write($0.value) }
            begin(0xD0, count: entries.count)
            for reference in references { append(reference, width) }
        default: writeScalar(value)
        }
        return offsets.count - 1
    }

    private mutating func writeScalar(_ value: Value) {
        switch value {
        case .boolean(let value): begin(value ? 0x09 : 0x08)
        case .integer(let number): write(number)
        case .real(let number): write(0x23, number)
        case .date(let seconds): write(0x33, seconds)
        case .data(let data):
            begin(0x40, count: data.count)
            bytes += data
        case .string(let text):
            let utf8 = text.string.utf8
            if utf8.allSatisfy({ $0 < 0x80 }) {
                begin(0x50, count: utf8.count)
                bytes += utf8
            } else {
                let units = Array(text.string.utf16)
                begin(0x60, count: units.count)
                for unit in units { append(Int(unit), 2) }
            }
        case .array, .dictionary: break
        }
    }

    private mutating func write(_ number: Int64) {
        offsets.append(bytes.count)
        appendInteger(number)
    }

    private mutating func write(_ marker: UInt8, _ number: Double) {
        begin(marker)
        append(Int(truncatingIfNeeded: number.bitPattern), 8)
    }

    /// Begins an object without a length, or with the length in its marker.
    private mutating func begin(_ marker: UInt8) {
        offsets.append(bytes.count)
        bytes.append(marker)
    }

    private mutating func begin(_ marker: UInt8, count: Int) {
        begin(marker | UInt8(min(count, 0x0F)))
        if count >= 0x0F { appendInteger(Int64(count)) }
    }

    /// A negative number takes eight bytes; readers treat shorter ones as unsigned.
    private mutating func appendInteger(_ number: Int64) {
        let exponent = number < 0 || number > UInt32.max ? 3 : number > UInt16.max ? 2 : number > UInt8.max ? 1 : 0
        bytes.append(0x10 | UInt8(exponent))
        append(Int(number), 1 << exponent)
    }

    private mutating func append(_ number: Int, _ width: Int) {
        for shift in (0..<width).reversed() { bytes.append(UInt8(truncatingIfNeeded: number >> (8 * shift))) }
    }

    private mutating func finish(top: Int) {
        let table = bytes.count
        let offsetWidth = table < 1 << 8 ? 1 : table < 1 << 16 ? 2 : 4
        for offset in offsets { append(offset, offsetWidth) }
        bytes += [0, 0, 0, 0, 0, 0, UInt8(offsetWidth), UInt8(width)]
        for number in [offsets.count, top, table] { append(number, 8) }
    }
}
