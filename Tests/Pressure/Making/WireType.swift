// SPDX-License-Identifier: Apache-2.0

internal import SeededRandom

/// A complete type of D-Bus.
///
/// D-Bus Specification, "Type System".
indirect enum WireType: Sendable {
    case basic(Character)
    case variant
    case array(WireType)
    case structure([WireType])
    case entry(Character, WireType)

    var signature: String {
        switch self {
        case .basic(let code): "\(code)"
        case .variant: "v"
        case .array(let element): "a\(element.signature)"
        case .structure(let members): "(\(members.map(\.signature).joined()))"
        case .entry(let key, let value): "{\(key)\(value.signature)}"
        }
    }

    var alignment: Int {
        switch self {
        case .basic("y"), .basic("g"), .variant: 1
        case .basic("n"), .basic("q"): 2
        case .basic("x"), .basic("t"), .basic("d"), .structure, .entry: 8
        case .basic, .array: 4
        }
    }

    /// The types of a valid signature.
    static func parse(_ signature: String) -> [WireType] {
        var rest = Substring(signature)
        var types: [WireType] = []
        while let type = next(&rest) { types.append(type) }
        return types
    }

    private static func next(_ rest: inout Substring) -> WireType? {
        switch rest.popFirst() {
        case nil, ")", "}": return nil
        case "v": return .variant
        case "a":
            return next(&rest).map { .array($0) }
        case "(":
            var members: [WireType] = []
            while let member = next(&rest) { members.append(member) }
            return .structure(members)
        case "{":
            guard let key = rest.popFirst(), let value = next(&rest) else { return nil }
            _ = rest.popFirst()
            return .entry(key, value)
        case let code?: return .basic(code)
        }
    }

    /// A random type of limited depth. It has no file descriptors, which travel beside a message's bytes.
    static func any(depth: Int, _ random: inout SplitMix) -> WireType {
        switch depth == 0 ? 0 : Int.random(in: 0..<10, using: &random) {
        case 6: .variant
        case 7: .array(.any(depth: depth - 1, &random))
        case 8: .array(.entry(basic(&random), .any(depth: depth - 1, &random)))
        case 9: .structure((0...Int.random(in: 0..<3, using: &random)).map { _ in .any(depth: depth - 1, &random) })
        default: .basic(basic(&random))
        }
    }

    private static func basic(_ random: inout SplitMix) -> Character {
        Array("ybnqiuxtdsog").randomElement(using: &random) ?? "s"
    }
}
