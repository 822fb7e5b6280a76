// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import PropertyListFiles
import Testing

@Suite struct BrokenFileTests {
    @Test(arguments: [
        ("", "line 1, column 1: a value is expected, and there is the end"),
        ("{\"a\": 1,\n \"b\": [1,}", "line 2, column 10: a value is expected, and there is \"}\""),
        ("{\"é\": x}", "line 1, column 7: a value is expected, and there is \"x\""),
        ("{\"a\": 1 \"b\": 2}", "line 1, column 9: a comma or } is expected, and there is \"\"\""),
        ("{\"a\": 1,\n\"a\": 2}", "line 2, column 1: the key \"a\" comes twice"),
        ("{\"a\": null}", "line 1, column 7: a property list has no null; leave the key out"),
        ("[9223372036854775808]", "line 1, column 2: an integer has 64 bits, and this is beyond"),
        ("[1e999]", "line 1, column 2: the number is too large for a real"),
        ("[012]", "line 1, column 2: a number doesn't begin with 0"),
        ("[\"abc", "line 1, column 2: the string that begins here has no end"),
        ("[\"\\ud800x\"]", "line 1, column 5: half of a surrogate pair is not a character"),
        ("[1] 2", "line 1, column 5: the value is complete, and \"2\" follows"),
        ("[\n{\"$data\": \"???\"}]", "line 2, column 1: \"$data\" doesn't go with this value: it takes Base64"),
    ])
    func `broken JSON is refused with its line and column`(text: String, sentence: String) {
        expect(.json, text, sentence)
    }

    @Test(arguments: ["real", "integer", "date", "no-tag"])
    func `a number that is one long character is refused at once`(tag: String) {
        let text = "a" + String(repeating: "\u{301}\u{327}", count: 500_000)
        let file = Self.head + "<\(tag)>\(text)</\(tag)></plist>"
        #expect(throws: FileError.self) { try FileFormat.xml.read(Array(file.utf8)) }
        #expect(throws: FileError.self) { try FileFormat.xml.read(Array((Self.head + "<string>&\(text);").utf8)) }
    }

    private static let head = "<?xml version=\"1.0\"?>\n<plist version=\"1.0\">\n"

    @Test(arguments: [
        (
            "<dict>\n<key>a</key><integer>1</integer>\n",
            "line 5, column 1: <key> or </dict> is expected, and there is the end"
        ),
        ("<dict><key>a</key></dict></plist>", "line 3, column 19: a value is expected, and there is </dict>"),
        (
            "<dict><integer>1</integer></dict></plist>",
            "line 3, column 7: <key> or </dict> is expected, and there is <integer>"
        ),
        ("<integer>1x</integer></plist>", "line 3, column 1: what <integer> holds is not one of that type"),
        ("<date>yesterday</date></plist>", "line 3, column 1: what <date> holds is not one of that type"),
        ("<date>2026</date></plist>", "line 3, column 1: what <date> holds is not one of that type"),
        ("<nib/></plist>", "line 3, column 1: <nib> is not an element of a property list"),
        ("<string>a & b</string></plist>", "line 3, column 11: & is written as &amp;"),
        ("<string>&eacute;</string></plist>", "line 3, column 9: &eacute; is not a character"),
        ("<string>a</integer></plist>", "line 3, column 10: </string> is expected, and there is </integer>"),
        ("<string>a</string>", "line 3, column 19: </plist> is expected, and there is the end"),
        ("<true/></plist>x", "line 3, column 16: the property list is complete, and \"x\" follows"),
    ])
    func `broken XML is refused with its line and column`(text: String, sentence: String) {
        expect(.xml, Self.head + text, sentence)
    }

    @Test func `entities of a file's own are refused, as they can fill the memory`() {
        expect(
            .xml, "<?xml version=\"1.0\"?>\n<!DOCTYPE plist [<!ENTITY a \"aaaa\">]><plist/>",
            "line 2, column 1: a document type with declarations of its own is not read")
    }

    @Test func `text that isn't UTF-8 is refused at the byte`() {
        #expect { try FileFormat.json.read(Array("[\"a\"".utf8) + [0xFF]) } throws: {
            "\($0)" == "line 1, column 5: this is not UTF-8"
        }
        #expect { try FileFormat.json.read([0xFF, 0xFE, 0x5B, 0x00]) } throws: { "\($0)".contains("UTF-16") }
    }

    @Test(arguments: FileFormat.allCases)
    func `a file that is cut short anywhere is refused, and crashes nothing`(format: FileFormat) throws {
        let bytes = try format.write(.dictionary(Samples.store))
        let step = max(1, bytes.count / 100)
        // White space and the end of </plist> may be missing.
        for length in stride(from: 0, to: bytes.count - 10, by: step) {
            #expect(throws: FileError.self) { try format.read(Array(bytes[..<length])) }
        }
    }

    @Test(arguments: FileFormat.allCases)
    func `a file with any byte changed is read or refused, and crashes nothing`(format: FileFormat) throws {
        let bytes = try format.write(.array(Samples.all))
        for index in stride(from: 0, to: bytes.count, by: 11) {
            for byte in [0, 0x1F, 0x7F, 0xFF, bytes[index] ^ 1] as [UInt8] {
                var changed = bytes
                changed[index] = byte
                _ = try? format.read(changed)
            }
        }
    }

    @Test(arguments: FileFormat.allCases)
    func `containers that are nested without end are refused`(format: FileFormat) {
        let depth = 100_000
        let files: [FileFormat: [UInt8]] = [
            .json: Array(String(repeating: "[", count: depth).utf8),
            .xml: Array(("<plist>" + String(repeating: "<array>", count: depth)).utf8),
            // An array that contains itself.
            .binary: Array("bplist00".utf8) + [0xA1, 0, 8] + [0, 0, 0, 0, 0, 0, 1, 1]
                + [0, 0, 0, 0, 0, 0, 0, 1] + [0, 0, 0, 0, 0, 0, 0, 0] + [0, 0, 0, 0, 0, 0, 0, 10],
        ]
        #expect { try format.read(files[format] ?? []) } throws: { "\($0)".contains("nested more than 64 deep") }
    }

    @Test func `a binary file whose arrays double with each level is refused`() {
        var bytes = Array("bplist00".utf8)
        var offsets: [UInt8] = []
        for level in 0..<40 as Range<UInt8> {
            offsets.append(UInt8(bytes.count))
            bytes += level == 39 ? [0x09] : [0xA2, level + 1, level + 1]
        }
        let table = UInt8(bytes.count)
        bytes += offsets + [0, 0, 0, 0, 0, 0, 1, 1]
        for number in [40, 0, table] { bytes += [0, 0, 0, 0, 0, 0, 0, number] }
        #expect { try FileFormat.binary.read(bytes) } throws: { "\($0)".contains("far larger than it is") }
    }

    @Test func `a binary file may repeat a long string, though not to any size`() throws {
        /// An array with many references to one string.
        func file(_ references: Int) -> [UInt8] {
            func number(_ value: Int, _ width: Int) -> [UInt8] {
                (0..<width).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
            }
            let array = [0xAF, 0x12] + number(references, 4) + [UInt8](repeating: 1, count: references)
            let string = [0x5F, 0x11] + number(5000, 2) + [UInt8](repeating: 0x61, count: 5000)
            let table = 8 + array.count + string.count
            let trailer = [0, 0, 0, 0, 0, 0, 4, 1] + number(2, 8) + number(0, 8) + number(table, 8)
            return Array("bplist00".utf8) + array + string + number(8, 4) + number(8 + array.count, 4) + trailer
        }
        let text = Value.string(Text(String(repeating: "a", count: 5000)))
        #expect(try FileFormat.binary.read(file(200)) == .array(Array(repeating: text, count: 200)))
        #expect { try FileFormat.binary.read(file(5000)) } throws: { "\($0)".contains("far larger than it is") }
    }

    private func expect(_ format: FileFormat, _ text: String, _ sentence: String) {
        #expect { try format.read(Array(text.utf8)) } throws: { "\($0)" == sentence }
    }
}
