// SPDX-License-Identifier: Apache-2.0

// Header fields that a bus passes on unread.
//
// libsystemd steps over fields that it doesn't know, and gets it wrong: of an array it skips the first element alone.
// So what a sender puts into such an array can be read as fields, with a sender of the attacker's choice, while the bus
// has checked the message and appended the true sender. It also recurses with each variant, until the stack ends.
// dbus-daemon removes unknown fields; dbus-broker passes them on. There, messages come through this filter, which drops
// those with fields that the D-Bus Specification doesn't know.

/// Divides what a bus sends into messages, and decides by their headers which are passed on.
struct HeaderFilter {
    private enum State {
        /// The lines of the authentication.
        case line([UInt8])
        /// A message's header, as far as it has arrived.
        case header([UInt8])
        /// What is left of a message.
        case rest(Int, isPassed: Bool)
    }
    private var state = State.line([])

    /// Takes what has arrived.
    /// - Returns: what is passed on; `nil` if it isn't D-Bus.
    mutating func pass(_ bytes: ArraySlice<UInt8>) -> [UInt8]? {
        var (left, passed) = (bytes, [UInt8]())
        while let byte = left.first {
            switch state {
            case .line(var line):
                left.removeFirst()
                line.append(byte)
                passed.append(byte)
                guard line.count <= Self.longestLine else { return nil }
                guard byte == UInt8(ascii: "\n") else {
                    state = .line(line)
                    continue
                }
                // No descriptors are negotiated, so messages follow.
                state = line.starts(with: Array("OK ".utf8)) ? .header([]) : .line([])
            case .header(var header):
                // Else the array would be copied when it grows.
                state = .header([])
                let known = Header(header)
                let wanted = (known?.isTooLong == false ? known?.size : nil) ?? Header.fixedSize
                let part = left.prefix(wanted - header.count)
                left = left.dropFirst(part.count)
                header += part
                state = .header(header)
                guard header.count == wanted, let known = Header(header) else { continue }
                if known.isInvalid { return nil }
                if known.size > header.count, !known.isTooLong { continue }
                let isPassed = !known.isTooLong && !known.isTooLarge && known.hasOnlyKnownFields(header)
                if isPassed { passed += header }
                let rest = known.size - header.count + known.bodySize
                state = rest == 0 ? .header([]) : .rest(rest, isPassed: isPassed)
            case .rest(let count, let isPassed):
                let part = left.prefix(count)
                left = left.dropFirst(part.count)
                if isPassed { passed += part }
                state = part.count == count ? .header([]) : .rest(count - part.count, isPassed: isPassed)
            }
        }
        return passed
    }

    private static let longestLine = 16 << 10
}

/// A message's header, as its first bytes describe it.
private struct Header {
    private let isBigEndian: Bool
    private let fieldsSize: Int
    let bodySize: Int

    static let fixedSize = 16
    /// More than the known fields can take: a path has up to 64 KiB.
    private static let longestFields = 128 << 10
    /// The largest message, by the D-Bus Specification.
    private static let largestMessage = 128 << 20

    /// - Parameter bytes: a message's beginning; `nil` is returned for less than the fixed part.
    init?(_ bytes: [UInt8]) {
        guard bytes.count >= Self.fixedSize else { return nil }
        isBigEndian = bytes[0] == UInt8(ascii: "B")
        bodySize = Int(Self.number(at: 4, in: bytes, isBigEndian))
        fieldsSize = Int(Self.number(at: 12, in: bytes, isBigEndian))
    }

    /// The size of the whole header, in bytes.
    var size: Int { Self.fixedSize + aligned(fieldsSize, to: 8) }
    var isInvalid: Bool { size + bodySize > Self.largestMessage }
    var isTooLong: Bool { fieldsSize > Self.longestFields }
    /// More than anybody sends who means well: dbus-daemon passes on 32 MiB, and libsystemd ends at 128.
    var isTooLarge: Bool { size + bodySize > 64 << 20 }

    /// The type of each field of the D-Bus Specification, by its code.
    private static let types = Array(" osssussgu".utf8)

    /// Whether each field is one of the specification, of its type, and there once.
    func hasOnlyKnownFields(_ bytes: [UInt8]) -> Bool {
        // A bit for each code.
        var (offset, seen) = (Self.fixedSize, UInt16(0))
        let end = Self.fixedSize + fieldsSize
        while offset < end {
            offset = aligned(offset, to: 8)
            guard offset + 4 <= end else { return false }
            let code = bytes[offset]
            guard code > 0, code < Self.types.count, seen & 1 << code == 0, bytes[offset + 1] == 1,
                bytes[offset + 2] == Self.types[Int(code)], bytes[offset + 3] == 0
            else { return false }
            seen |= 1 << code
            offset += 4
            switch Self.types[Int(code)] {
            case UInt8(ascii: "u"): offset += 4
            case UInt8(ascii: "g"):
                guard offset < end else { return false }
                offset += 1 + Int(bytes[offset]) + 1
            default:
                guard offset + 4 <= end else { return false }
                offset += 4 + Int(Self.number(at: offset, in: bytes, isBigEndian)) + 1
            }
        }
        return offset == end
    }

    private static func number(at offset: Int, in bytes: [UInt8], _ isBigEndian: Bool) -> UInt32 {
        let four = bytes[offset..<(offset + 4)]
        return isBigEndian
            ? four.reduce(0) { $0 << 8 | UInt32($1) } : four.reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }

    private func aligned(_ offset: Int, to alignment: Int) -> Int { (offset + alignment - 1) / alignment * alignment }
}
