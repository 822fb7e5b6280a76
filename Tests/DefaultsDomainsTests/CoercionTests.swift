// SPDX-License-Identifier: Apache-2.0

import DefaultsDomains
import Foundation
import PropertyList
import Testing

struct CoercionTests {
    /// A value, and what each getter has to return for it.
    struct Row: Sendable, CustomTestStringConvertible {
        let value: Value
        var bool = false
        var integer = 0
        var double = 0.0
        var string: String?

        var testDescription: String { "\(value)" }
    }

    static let rows: [Row] = [
        Row(value: .boolean(true), bool: true, integer: 1, double: 1, string: "1"),
        Row(value: .boolean(false), string: "0"),
        Row(value: .integer(0), string: "0"),
        Row(value: .integer(-7), bool: true, integer: -7, double: -7, string: "-7"),
        Row(
            value: .integer(.max), bool: true, integer: .max, double: 0x1p63,
            string: "9223372036854775807"),
        Row(value: .real(0), string: "0"),
        Row(value: .real(2), bool: true, integer: 2, double: 2, string: "2"),
        Row(value: .real(0.5), bool: true, integer: 0, double: 0.5, string: "0.5"),
        Row(value: .real(-2.9), bool: true, integer: -2, double: -2.9, string: "-2.9"),
        Row(value: .real(1e300), bool: true, integer: .max, double: 1e300, string: "1e+300"),
        Row(value: .real(-.infinity), bool: true, integer: .min, double: -.infinity, string: "-inf"),
        Row(value: .string("YES"), bool: true, string: "YES"),
        Row(value: .string("true"), bool: true, string: "true"),
        Row(value: .string("1"), bool: true, integer: 1, double: 1, string: "1"),
        Row(value: .string("NO"), string: "NO"),
        Row(value: .string("0"), string: "0"),
        Row(value: .string(""), string: ""),
        Row(value: .string("42.7 apples"), bool: true, integer: 42, double: 42.7, string: "42.7 apples"),
        Row(value: .string("-1e3"), bool: true, integer: -1, double: -1000, string: "-1e3"),
        Row(
            value: .string("99999999999999999999"), bool: true, integer: .max, double: 1e20,
            string: "99999999999999999999"),
        Row(value: .string("abc"), string: "abc"),
        Row(value: .string("𝄞"), string: "𝄞"),
        Row(value: .string("1.5 🎈"), bool: true, integer: 1, double: 1.5, string: "1.5 🎈"),
        Row(value: .string("🎈1"), string: "🎈1"),
        Row(value: .data([1])), Row(value: .date(1)), Row(value: .array([.integer(1)])),
        Row(value: .dictionary(["a": .integer(1)])),
    ]

    @Test(arguments: rows)
    func `each getter makes of each value what the table says`(row: Row) {
        #expect(row.value.defaultsBool == row.bool)
        #expect(row.value.defaultsInteger == row.integer)
        #expect(row.value.defaultsDouble == row.double)
        #expect(row.value.defaultsFloat == Float(row.double))
        #expect(row.value.defaultsString == row.string)
    }

    @Test(arguments: ["YES", "yes", "Y", "t", "TRUE", " 1", "+1", "009", "-1", "NO", "n", "f", "0", "", "x1", "12abc"])
    func `a string is read as NSString reads it`(text: String) {
        let (value, string) = (Value.string(Text(text)), NSString(string: text))
        #expect(value.defaultsBool == string.boolValue && value.defaultsInteger == string.integerValue)
        #expect(value.defaultsDouble == string.doubleValue)
    }

    @Test func `no number is 0 and true, as NaN differs from 0`() {
        let value = Value.real(.nan)
        #expect(value.defaultsBool && value.defaultsInteger == 0 && value.defaultsDouble.isNaN)
    }

    @Test func `only an array of strings is a string array`() {
        #expect(Value.array([.string("a"), .string("b")]).defaultsStrings == ["a", "b"])
        #expect(Value.array([]).defaultsStrings == [])
        #expect(Value.array([.string("a"), .integer(1)]).defaultsStrings == nil)
        #expect(Value.string("a").defaultsStrings == nil)
    }

    @Test func `a file's URL is its path, with ~ for the home`() throws {
        let home = NSHomeDirectory()
        for (path, stored) in [(home + "/notes/a b.txt", "~/notes/a b.txt"), ("/etc/hosts", "/etc/hosts")] {
            let value = try Value(defaultsURL: URL(fileURLWithPath: path), home: home)
            #expect(value == .string(Text(stored)))
            #expect(value.defaultsURL == URL(fileURLWithPath: path))
        }
        #expect(try Value(defaultsURL: URL(fileURLWithPath: home + "er"), home: home) == .string(Text(home + "er")))
        #expect(try Value(defaultsURL: URL(fileURLWithPath: "/a"), home: nil) == .string("/a"))
    }

    @Test(arguments: ["https://example.org/a?b=c#d", "mailto:ada@example.org"])
    func `another URL is an archive, and comes back`(text: String) throws {
        let url = try #require(URL(string: text))
        let value = try Value(defaultsURL: url, home: "/home/ada")
        guard case .data = value else { return #expect(Bool(false), "\(value)") }
        #expect(value.defaultsURL == url)
    }

    @Test func `a URL that is relative to another one comes back`() throws {
        let base = try #require(URL(string: "https://example.org/a/"))
        let url = try #require(URL(string: "b?c", relativeTo: base))
        #expect(try Value(defaultsURL: url, home: nil).defaultsURL?.absoluteString == "https://example.org/a/b?c")
    }

    /// Foundation's unarchiver ends the process on most of these.
    @Test func `archives of other objects and damaged ones give no URL, and end nothing`() throws {
        for object in [NSDate(), "text" as NSString, [1, 2] as NSArray] as [NSObject & NSCoding] {
            let archive = try NSKeyedArchiver.archivedData(withRootObject: object, requiringSecureCoding: false)
            #expect(Value.data(Array(archive)).defaultsURL == nil)
        }
        let url = try #require(URL(string: "https://example.org/a?b=c#d"))
        guard case .data(let bytes) = try Value(defaultsURL: url, home: nil) else {
            return #expect(Bool(false), "a URL is no archive")
        }
        for index in bytes.indices {
            for byte in [0, 0x0F, 0x80, 0xD1, 0xFF] as [UInt8] {
                var damaged = bytes
                damaged[index] = byte
                _ = Value.data(damaged).defaultsURL
            }
            #expect(Value.data(Array(bytes[..<index])).defaultsURL == nil)
        }
    }

    @Test func `what is no URL gives none`() {
        for value: Value in [.integer(1), .data([1, 2]), .string(""), .array([])] { #expect(value.defaultsURL == nil) }
    }
}
