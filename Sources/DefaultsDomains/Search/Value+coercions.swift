// SPDX-License-Identifier: Apache-2.0

// How the typed getters of UserDefaults convert a value: as Apple's page of each getter says, even if Apple's header
// differs. Strings are read as NSString reads them.

package import Foundation
package import PropertyList
internal import PropertyListFiles

extension Value {
    /// The value itself if the getters of numbers convert it: a Boolean, a number or a string; otherwise `nil`.
    package var scalar: Value? {
        switch self {
        case .boolean, .integer, .real, .string: self
        default: nil
        }
    }

    /// `bool(forKey:)`: a number other than 0, or a string such as "YES", "true" and "1".
    package var defaultsBool: Bool {
        switch self {
        case .boolean(let value): value
        case .integer(let value): value != 0
        case .real(let value): value != 0
        case .string(let text): Self.numeral(text).boolValue
        default: false
        }
    }

    /// `integer(forKey:)`: a real number without its fraction, clamped to the range of integers.
    package var defaultsInteger: Int {
        switch self {
        case .boolean(let value): value ? 1 : 0
        case .integer(let value): Int(clamping: value)
        case .real(let value): Int(clamping: value)
        case .string(let text): Self.numeral(text).integerValue
        default: 0
        }
    }

    /// `double(forKey:)`.
    package var defaultsDouble: Double {
        switch self {
        case .boolean(let value): value ? 1 : 0
        case .integer(let value): Double(value)
        case .real(let value): value
        case .string(let text): Self.numeral(text).doubleValue
        default: 0
        }
    }

    /// `float(forKey:)`.
    package var defaultsFloat: Float { Float(defaultsDouble) }

    /// Returns a text for NSString to read as a number: up to a character beyond 16 bits, which no number has.
    ///
    /// There, Foundation's `doubleValue` crashes the process: it takes half of a surrogate pair for a character.
    private static func numeral(_ text: Text) -> NSString {
        String(String.UnicodeScalarView(text.string.unicodeScalars.prefix { $0.value < 0x10000 })) as NSString
    }

    /// `string(forKey:)`: a number with as few digits as possible, "1" for true.
    package var defaultsString: String? {
        switch self {
        case .string(let text): text.string
        case .boolean(let value): value ? "1" : "0"
        case .integer(let value): "\(value)"
        case .real(let value): Self.shortText(value)
        default: nil
        }
    }

    private static func shortText(_ value: Double) -> String {
        // A number that was set as a Float is written as one: 12.34, and not 12.34000015258789.
        let isFloat = value.magnitude < 16_777_216 && Double(Float(value)) == value
        let text = isFloat ? "\(Float(value))" : "\(value)"
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }

    /// `stringArray(forKey:)`: nothing is converted.
    package var defaultsStrings: [String]? {
        guard case .array(let values) = self else { return nil }
        var strings: [String] = []
        for value in values {
            guard case .string(let text) = value else { return nil }
            strings.append(text.string)
        }
        return strings
    }

    /// `url(forKey:)`: a string is the path of a file, in which `~` is expanded; data is an archived NSURL.
    package var defaultsURL: URL? {
        switch self {
        case .string(let text) where !text.string.isEmpty:
            URL(fileURLWithPath: (text.string as NSString).expandingTildeInPath)
        case .data(let bytes): KeyedArchive(bytes).flatMap { $0.root.flatMap($0.url) }
        default: nil
        }
    }

    /// Makes the value of `set(_: URL?, forKey:)`: a file's path, with `~` for the home; an archive of other URLs.
    ///
    /// - Parameter home: the user's home directory; `nil` if there is none.
    package init(defaultsURL url: URL, home: String?) throws {
        if url.isFileURL {
            self = .string(Text(Self.abbreviate(url.path, home: home)))
        } else {
            let data = try NSKeyedArchiver.archivedData(withRootObject: url as NSURL, requiringSecureCoding: true)
            self = .data(Array(data))
        }
    }

    private static func abbreviate(_ path: String, home: String?) -> String {
        guard let home, !home.isEmpty, home != "/", path == home || path.hasPrefix(home + "/") else { return path }
        return "~" + path.dropFirst(home.count)
    }
}

extension Int {
    /// Rounds a real number towards 0, and clamps it to the range of integers; 0 for NaN.
    fileprivate init(clamping value: Double) {
        if value.isNaN {
            self = 0
        } else {
            self = Int(exactly: value.rounded(.towardZero)) ?? (value < 0 ? .min : .max)
        }
    }
}

extension KeyedArchive {
    /// Returns an archived NSURL; `nil` for another object.
    ///
    /// Not by NSKeyedUnarchiver: on Linux it ends the process if the bytes, which any program may have written, are
    /// another object's archive.
    fileprivate func url(_ object: [Text: Value]) -> URL? {
        guard className(of: object) == "NSURL", let relative = string(object["NS.relative"]) else { return nil }
        let base = self.object(object["NS.base"]).flatMap { className(of: $0) == "NSURL" ? $0 : nil }
        guard let base else { return URL(string: relative) }
        // A base has none itself.
        return string(base["NS.relative"]).flatMap { URL(string: $0) }.flatMap { URL(string: relative, relativeTo: $0) }
    }
}
