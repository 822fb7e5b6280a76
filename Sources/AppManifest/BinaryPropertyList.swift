// SPDX-License-Identifier: Apache-2.0

/// The one thing about a binary property list that has to be known before it is read.
///
/// Its objects are a table, and containers refer to them by number. One that refers to another container twice is
/// twice as large when it is read, and a few hundred bytes of such can fill the memory. The format is described in
/// CFBinaryPList.c of swift-corelibs-foundation.
enum BinaryPropertyList {
    private static let magic = Array("bplist".utf8)
    private static let trailerSize = 32

    /// Whether reading the bytes makes no more objects than they have: true for what is no binary property list.
    static func isTree(_ bytes: [UInt8]) -> Bool {
        guard bytes.starts(with: magic) else { return true }
        guard let table = Table(bytes) else { return false }
        var referred = Set([table.top])
        for object in 0..<table.count {
            guard let references = table.references(of: object) else { return false }
            for reference in references where table.isContainer(reference) {
                if !referred.insert(reference).inserted { return false }
            }
        }
        return true
    }

    private struct Table {
        let bytes: [UInt8]
        let count: Int
        let top: Int
        private let offsetSize: Int
        private let referenceSize: Int
        private let offsets: Int

        init?(_ bytes: [UInt8]) {
            let trailer = bytes.count - BinaryPropertyList.trailerSize
            guard trailer >= 8 else { return nil }
            self.bytes = bytes
            offsetSize = Int(bytes[trailer + 6])
            referenceSize = Int(bytes[trailer + 7])
            guard (1...8).contains(offsetSize), (1...8).contains(referenceSize),
                let count = Self.number(bytes, trailer + 8, 8), let top = Self.number(bytes, trailer + 16, 8),
                let offsets = Self.number(bytes, trailer + 24, 8), count <= bytes.count, top < count,
                offsets <= bytes.count, offsets + count * offsetSize <= bytes.count
            else { return nil }
            (self.count, self.top, self.offsets) = (count, top, offsets)
        }

        func isContainer(_ object: Int) -> Bool {
            guard let offset = offset(of: object) else { return true }
            return bytes[offset] >= 0xA0 && bytes[offset] < 0xE0
        }

        /// What a container refers to; `nil` if the table makes no sense.
        func references(of object: Int) -> [Int]? {
            guard let offset = offset(of: object) else { return nil }
            guard isContainer(object) else { return [] }
            guard let (size, start) = length(at: offset) else { return nil }
            // A dictionary has its keys first, and then its values.
            let count = bytes[offset] >= 0xD0 ? 2 * size : size
            var references: [Int] = []
            for index in 0..<count {
                guard let reference = Self.number(bytes, start + index * referenceSize, referenceSize),
                    reference < self.count
                else { return nil }
                references.append(reference)
            }
            return references
        }

        private func offset(of object: Int) -> Int? {
            Self.number(bytes, offsets + object * offsetSize, offsetSize).flatMap { $0 < bytes.count ? $0 : nil }
        }

        /// How many elements a container has, and where they begin.
        private func length(at offset: Int) -> (size: Int, start: Int)? {
            let short = Int(bytes[offset] & 0x0F)
            if short < 0x0F { return (short, offset + 1) }
            guard offset + 1 < bytes.count, bytes[offset + 1] & 0xF0 == 0x10 else { return nil }
            let width = 1 << Int(bytes[offset + 1] & 0x0F)
            guard let size = Self.number(bytes, offset + 2, width), size <= bytes.count else { return nil }
            return (size, offset + 2 + width)
        }

        private static func number(_ bytes: [UInt8], _ start: Int, _ width: Int) -> Int? {
            guard width <= 8, start >= 0, start + width <= bytes.count else { return nil }
            let number = bytes[start..<start + width].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            return Int(exactly: number).flatMap { $0 < 1 << 32 ? $0 : nil }
        }
    }
}
