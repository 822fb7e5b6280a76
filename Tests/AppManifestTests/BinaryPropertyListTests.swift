// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import AppManifest

struct BinaryPropertyListTests {
    /// A binary property list of arrays, each of which refers so many times to the next one.
    private func nestedArrays(levels: Int, references: Int) -> [UInt8] {
        var bytes = Array("bplist00".utf8)
        var offsets: [Int] = []
        for level in 0..<levels {
            offsets.append(bytes.count)
            bytes.append(0xA0 | UInt8(references))
            bytes += [UInt8](repeating: UInt8(level + 1), count: references)
        }
        offsets.append(bytes.count)
        bytes.append(0x09)
        let table = bytes.count
        for offset in offsets { bytes += [UInt8(offset >> 8), UInt8(offset & 0xFF)] }
        bytes += [0, 0, 0, 0, 0, 0, 2, 1]
        for number in [offsets.count, 0, table] { bytes += withUnsafeBytes(of: UInt64(number).bigEndian, Array.init) }
        return bytes
    }

    @Test func `containers that are referred to twice are refused before they grow`() {
        #expect(!BinaryPropertyList.isTree(nestedArrays(levels: 12, references: 14)))
        #expect(!BinaryPropertyList.isTree(nestedArrays(levels: 2, references: 2)))
        #expect(throws: Manifest.Refusal.self) {
            try Manifest(propertyList: nestedArrays(levels: 12, references: 14))
        }
    }

    @Test func `a scalar that is shared does no harm`() {
        #expect(BinaryPropertyList.isTree(nestedArrays(levels: 1, references: 14)))
    }

    @Test func `what Foundation writes is taken`() throws {
        let list: [String: Any] = [
            "a": ["x", "x", ["y": [1, 2, 3]]], "b": (0..<300).map { "key\($0)" }, "c": [[String: Any]](),
        ]
        let data = try PropertyListSerialization.data(fromPropertyList: list, format: .binary, options: 0)
        #expect(BinaryPropertyList.isTree(Array(data)))
    }

    @Test func `a table that makes no sense, cut or flipped anywhere, is refused or a tree, and never a crash`() {
        let bytes = nestedArrays(levels: 3, references: 1)
        for length in 0..<bytes.count { _ = BinaryPropertyList.isTree(Array(bytes[..<length])) }
        for index in bytes.indices {
            for bit in 0..<8 {
                var flipped = bytes
                flipped[index] ^= 1 << bit
                _ = BinaryPropertyList.isTree(flipped)
            }
        }
        #expect(!BinaryPropertyList.isTree(Array("bplist00".utf8)))
    }
}
