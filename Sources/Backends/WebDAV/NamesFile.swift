// SPDX-License-Identifier: Apache-2.0

internal import Blobs
internal import Replication

/// The file of names, which users can read too.
enum NamesFile {
    static let mostBytes = 4 << 20
    private static let beginning = "UKVn 1"

    static func encode(_ names: Set<String>) -> [UInt8] {
        let text = ([beginning] + names.sorted()).joined(separator: "\n") + "\n"
        return Array((text + "\(Bits128(digestOf: Array(text.utf8)))\n").utf8)
    }

    /// Returns the names; `nil` if the file is corrupt, or something else.
    static func decode(_ bytes: [UInt8]) -> Set<String>? {
        let newline = UInt8(ascii: "\n")
        guard bytes.last == newline, let end = bytes.dropLast().lastIndex(of: newline) else { return nil }
        let (above, sum) = (bytes[...end], bytes[(end + 1)...].dropLast())
        guard above.starts(with: "\(beginning)\n".utf8), sum.elementsEqual("\(Bits128(digestOf: Array(above)))".utf8)
        else {
            return nil
        }
        let names = above.dropFirst(beginning.utf8.count + 1).split(separator: newline).lazy.filter(isName)
        return Set(names.prefix(BlobName.mostListed).map { String(decoding: $0, as: UTF8.self) })
    }

    private static func isName(_ name: ArraySlice<UInt8>) -> Bool {
        [16, 32, 66].contains(name.count) && name.allSatisfy(\.isLowerHexDigit)
    }
}
