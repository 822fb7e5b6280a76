// SPDX-License-Identifier: Apache-2.0

import PropertyList

// The rules again, slow and obvious, straight from the interface's "Limits" and docs/remote-format.md.

func slowSize(_ value: Value) -> Int {
    switch value {
    case .boolean: return 1
    case .integer, .real, .date: return 8
    case .string(let text): return max(1, Array(text.string.utf8).count)
    case .data(let bytes): return max(1, bytes.count)
    case .array(let values): return max(1, values.map(slowSize).reduce(0, +))
    case .dictionary(let values):
        let keys = values.keys.map { Array($0.string.utf8).count }.reduce(0, +)
        return max(1, keys + values.values.map(slowSize).reduce(0, +))
    }
}

func slowDepth(_ value: Value) -> Int {
    switch value {
    case .array(let values): 1 + (values.map(slowDepth).max() ?? 0)
    case .dictionary(let values): 1 + (values.values.map(slowDepth).max() ?? 0)
    default: 0
    }
}

func slowEncoding(_ value: Value) -> [UInt8] {
    switch value {
    case .boolean(let bool): return [bool ? 2 : 1]
    case .integer(let number):
        // 2n for n ≥ 0, -2n - 1 below, without overflow in 64 bits.
        let zigzag = number >= 0 ? 2 * UInt64(number) : 2 * UInt64(-(number + 1)) + 1
        return [3] + slowVarint(zigzag)
    case .real(let number): return [4] + slowBigEndian(number.bitPattern)
    case .date(let number): return [5] + slowBigEndian(number.bitPattern)
    case .string(let text): return [6] + slowPrefixed(Array(text.string.utf8))
    case .data(let bytes): return [7] + slowPrefixed(bytes)
    case .array(let values): return [8] + slowVarint(UInt64(values.count)) + values.flatMap(slowEncoding)
    case .dictionary(let values):
        let entries = values.map { (Array($0.key.string.utf8), $0.value) }
            .sorted { $0.0.lexicographicallyPrecedes($1.0) }
        return [9] + slowVarint(UInt64(entries.count)) + entries.flatMap { slowPrefixed($0.0) + slowEncoding($0.1) }
    }
}

func slowVarint(_ number: UInt64) -> [UInt8] {
    number < 128 ? [UInt8(number)] : [UInt8(number % 128 + 128)] + slowVarint(number / 128)
}

private func slowBigEndian(_ number: UInt64) -> [UInt8] {
    (0..<8).map { UInt8(number >> (56 - 8 * $0) & 0xFF) }
}

private func slowPrefixed(_ bytes: [UInt8]) -> [UInt8] {
    slowVarint(UInt64(bytes.count)) + bytes
}
