// SPDX-License-Identifier: Apache-2.0

internal import SeededRandom
internal import UbiquitousStoreTesting

extension Nonsense {
    /// Contents that fit a signature.
    mutating func contents(of signature: String) -> [UInt8] {
        budget = oneIn(200) ? 5000 : 200
        var wire = Wire()
        for type in WireType.parse(signature) { write(type, &wire) }
        return wire.bytes
    }

    private mutating func write(_ type: WireType, _ wire: inout Wire) {
        budget -= 1
        switch type {
        case .basic(let code): write(basic: code, &wire)
        case .variant: writeVariant(&wire)
        case .array(.basic("y")): writeBytes(&wire)
        case .array(let element):
            let count = budget <= 0 || oneIn(3) ? 0 : oneIn(30) ? number(budget) : number(4)
            var nonsense = self
            wire.array(alignment: element.alignment) { for _ in 0..<count { nonsense.write(element, &$0) } }
            self = nonsense
        case .structure(let members):
            wire.align(8)
            for member in members { write(member, &wire) }
        case .entry(let key, let value):
            wire.align(8)
            write(basic: key, &wire)
            write(value, &wire)
        }
    }

    private mutating func write(basic code: Character, _ wire: inout Wire) {
        switch code {
        case "y": wire.bytes.append(UInt8(number(256)))
        case "b": wire.number(UInt32(number(2)))
        case "n", "q": wire.number(UInt16(truncatingIfNeeded: integer()))
        case "i", "u": wire.number(UInt32(truncatingIfNeeded: integer()))
        case "x", "t": wire.number(integer())
        case "d": wire.number(any([0, 1 << 63, 0x7ff0 << 48, 0x7ff8 << 48, 1, 0x3ff0 << 48, random.next()]))
        case "o": wire.string(anyPath())
        case "g": wire.signature("a{sv}")
        default: wire.string(string())
        }
    }

    private mutating func integer() -> UInt64 {
        any([0, 0, 0, 1, 1, 2, 3, 0xff, 0x8000, 1 << 31, 1 << 32, 1 << 63, .max, random.next()])
    }

    private mutating func writeBytes(_ wire: inout Wire) {
        let plists = [
            "<plist><dict/></plist>", "bplist00", "<?xml version=\"1.0\"?><plist><dict><key>",
            ManifestText("org.example.Registered\(number(80))").xml,
        ]
        let bytes = oneIn(500) ? [UInt8](repeating: 7, count: 1 << 20 | number(3)) : Array(any(plists).utf8)
        wire.array(alignment: 1) { $0.bytes += bytes }
    }

    /// Writes a variant with something that a store takes, with any type, or with deep nesting.
    private mutating func writeVariant(_ wire: inout Wire) {
        if budget <= 0 || oneIn(3) {
            wire.signature("x")
            wire.number(integer())
        } else if oneIn(20) {
            writeDeep(&wire)
        } else {
            let type = oneIn(3) ? WireType.any(depth: 3, &random) : any(Self.values)
            wire.signature(type.signature)
            write(type, &wire)
        }
    }

    private static let values = ["s", "b", "d", "ay", "(d)", "av", "a{sv}", "as", "aav", "a{ss}"].flatMap(
        WireType.parse)

    /// Writes variants in variants, or arrays in arrays, up to the depth that the bus lets through.
    private mutating func writeDeep(_ wire: inout Wire) {
        let depth = number(28)
        if oneIn(2) {
            for _ in 0..<depth { wire.signature("v") }
            wire.signature("t")
            wire.number(1 as UInt64)
            return
        }
        let type = (0..<depth).reduce(WireType.variant) { inner, _ in .array(inner) }
        wire.signature(type.signature)
        write(type, &wire)
    }
}
