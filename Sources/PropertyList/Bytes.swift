// SPDX-License-Identifier: Apache-2.0

// Replaces functions of <string.h>, in words of eight bytes: this target imports nothing, and the strings here are
// short.
extension UnsafeRawBufferPointer {
    /// Whether both have the same bytes.
    @inline(__always)
    func hasSameBytes(as other: UnsafeRawBufferPointer) -> Bool {
        count == other.count && firstDifference(from: other) == count
    }

    /// Whether these bytes sort before the other's: at the first difference, or as a proper prefix.
    func precedes(_ other: UnsafeRawBufferPointer) -> Bool {
        let index = firstDifference(from: other)
        guard index < count, index < other.count else { return count < other.count }
        return self[index] < other[index]
    }

    /// A slice of the bytes, with indices from 0.
    subscript(slice range: Range<Int>) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: self[range])
    }

    /// Whether a byte is zero.
    var containsZero: Bool {
        var index = 0
        while index + 8 <= count {
            let word = loadUnaligned(fromByteOffset: index, as: UInt64.self)
            // Only a zero byte borrows and sets the top bit of a byte whose own top bit is clear. Its borrow can mark
            // the byte above too, but then there is a zero byte anyway.
            if (word &- 0x0101_0101_0101_0101) & ~word & 0x8080_8080_8080_8080 != 0 { return true }
            index += 8
        }
        while index < count {
            if self[index] == 0 { return true }
            index += 1
        }
        return false
    }

    /// The index of the first noncharacter in valid UTF-8 (Unicode Standard, section 23.7): U+FDD0 to U+FDEF, and the
    /// last two scalars of each plane. `nil` if there is none.
    var firstNoncharacter: Int? {
        var index = 0
        while index < count {
            // ASCII, of which most text consists.
            if index + 8 <= count,
                loadUnaligned(fromByteOffset: index, as: UInt64.self) & 0x8080_8080_8080_8080 == 0
            {
                index += 8
                continue
            }
            switch self[index] {
            case 0xEF where index + 3 <= count:
                let low = (self[index + 1], self[index + 2])
                if low.0 == 0xB7 && (0x90...0xAF).contains(low.1) || low.0 == 0xBF && low.1 >= 0xBE { return index }
                index += 3
            case 0xF0...0xF4 where index + 4 <= count:
                if self[index + 1] & 0xF == 0xF, self[index + 2] == 0xBF, self[index + 3] >= 0xBE { return index }
                index += 4
            default: index += 1
            }
        }
        return nil
    }

    /// The index of the first byte that differs, or the shorter count.
    @inline(__always)
    private func firstDifference(from other: UnsafeRawBufferPointer) -> Int {
        let common = Swift.min(count, other.count)
        var index = 0
        while index + 8 <= common {
            let left = loadUnaligned(fromByteOffset: index, as: UInt64.self)
            let right = other.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            // The first byte in memory is the lowest of a little-endian word.
            guard left == right else { return index + (left ^ right).littleEndian.trailingZeroBitCount / 8 }
            index += 8
        }
        while index < common, self[index] == other[index] { index += 1 }
        return index
    }
}

extension [UInt8] {
    /// Does the same as `==`, a word at a time.
    func hasSameBytes(as other: [UInt8]) -> Bool {
        withUnsafeBytes { left in other.withUnsafeBytes { left.hasSameBytes(as: $0) } }
    }
}
