// SPDX-License-Identifier: Apache-2.0

import SeededRandom
import Testing

@testable import SDBus

/// Calls that are copied to be answered later.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct KeptCallTests {
    @Test func `a copy has the same arguments, whatever they are`() async throws {
        let ends = try ThingPair()
        var texts: [(call: String, copy: String)] = []
        try ends.server.admitCalls { call in
            let text = (try? call.message.described()) ?? "unreadable"
            try? call.message.rewind()
            texts.append((text, (try? call.kept()?.message.described()) ?? "none"))
            call.refuse(.failed("it is only looked at"))
            return false
        }
        for number in 0..<300 {
            let seed = UInt64.random(in: 1 ... .max)
            _ = await errorName {
                var dice = SplitMix(seed: seed)
                try await ends.client.invoke(nil, "/thing", "org.example.Thing", "Echo") { call in
                    for _ in 0...Int.random(in: 0...2, using: &dice) { try call.append(anythingBy: &dice) }
                }
            }
            try #require(texts.count == number + 1, "seed \(seed)")
            #expect(texts[number].copy == texts[number].call, "seed \(seed)")
        }
    }
}

extension Message {
    /// Appends a value of any type.
    fileprivate func append(anythingBy dice: inout SplitMix) throws {
        try append(valueOf: Self.type(by: &dice, depth: 4), by: &dice)
    }

    private static func type(by dice: inout SplitMix, depth: Int) -> String {
        let basic = Array("ybnqiuxtdsog").map(String.init)
        let kind = depth == 0 ? 0 : Int.random(in: 0..<8, using: &dice)
        func inner() -> String { type(by: &dice, depth: depth - 1) }
        return switch kind {
        case 0...1: basic.randomElement(using: &dice) ?? "y"
        case 2...3: "a" + (basic.randomElement(using: &dice) ?? "y")
        case 4: "a" + inner()
        case 5: "a{" + (basic.randomElement(using: &dice) ?? "y") + inner() + "}"
        case 6: "(" + inner() + inner() + ")"
        default: "v"
        }
    }

    private func append(valueOf type: String, by dice: inout SplitMix) throws {
        switch type.first {
        case "a":
            let contents = String(type.dropFirst())
            try container("a", contents) {
                for _ in 0..<Int.random(in: 0...3, using: &dice) { try append(valueOf: contents, by: &dice) }
            }
        case "v":
            let contents = Self.type(by: &dice, depth: 2)
            try container("v", contents) { try append(valueOf: contents, by: &dice) }
        case "(", "{":
            let contents = String(type.dropFirst().dropLast())
            try container(type.first == "(" ? "r" : "e", contents) {
                for part in Self.parts(of: contents) { try append(valueOf: part, by: &dice) }
            }
        case "y": try append(UInt8.random(in: .min ... .max, using: &dice))
        case "b": try append(Bool.random(using: &dice))
        case "n": try append(Int16.random(in: .min ... .max, using: &dice))
        case "q": try append(UInt16.random(in: .min ... .max, using: &dice))
        case "i": try append(Int32.random(in: .min ... .max, using: &dice))
        case "u": try append(UInt32.random(in: .min ... .max, using: &dice))
        case "x": try append(Int64.random(in: .min ... .max, using: &dice))
        case "t": try append(UInt64.random(in: .min ... .max, using: &dice))
        case "d": try append(Double(bitPattern: .random(in: .min ... .max, using: &dice)))
        case "o": try append(objectPath: "/a\(Int.random(in: 0...99, using: &dice))")
        case "g": try append(signature: "ai")
        default: try append(String(repeating: "é", count: Int.random(in: 0...5, using: &dice)))
        }
    }

    /// Splits a signature into those of single values.
    private static func parts(of signature: String) -> [String] {
        var (parts, part, depth) = ([String](), "", 0)
        for letter in signature {
            part.append(letter)
            if "({".contains(letter) { depth += 1 }
            if ")}".contains(letter) { depth -= 1 }
            if depth > 0 || letter == "a" { continue }
            parts.append(part)
            part = ""
        }
        return parts
    }

    /// Returns a text that two messages share only if all that is left to read of them is the same.
    fileprivate func described() throws -> String {
        var text = ""
        while let type = try peekType() {
            let contents = try peekContents()
            text += " \(type)"
            switch type {
            case "a", "v", "r", "e":
                try enterContainer(type, contents)
                text += try "\(contents)[" + described() + "]"
                try exitContainer()
            case "y": text += try "\(readByte())"
            case "b": text += try "\(readBool())"
            case "n": text += try "\(readInt16())"
            case "q": text += try "\(readUInt16())"
            case "i": text += try "\(readInt32())"
            case "u": text += try "\(readUInt32())"
            case "x": text += try "\(readInt64())"
            case "t": text += try "\(readUInt64())"
            case "d": text += try "\(readDouble().bitPattern)"
            default: text += try "\"\(readString())\""
            }
        }
        return text
    }
}
