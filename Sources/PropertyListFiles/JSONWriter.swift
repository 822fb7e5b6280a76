// SPDX-License-Identifier: Apache-2.0

package import PropertyList

extension Unicode.Scalar {
    /// Whether a terminal would not show the character, but obey it: a control character, a line separator, or one that
    /// reverses what follows.
    package var isHidden: Bool {
        switch value {
        case 0..<0x20, 0x7F...0x9F, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }

    /// The number of a scalar that ``isHidden``, as four hexadecimal digits.
    package var fourDigits: String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 4 - digits.count) + digits
    }
}

/// Writes JSON that ``JSONReader`` reads as the same value.
package struct JSONWriter {
    private var text = ""
    private let isIndented: Bool

    /// Writes a value.
    ///
    /// - Parameter isIndented: whether to use several lines; otherwise one line without spaces.
    package static func write(_ value: Value, indented isIndented: Bool = false) -> String {
        var writer = JSONWriter(isIndented: isIndented)
        writer.write(value, nesting: 0)
        return writer.text
    }

    private init(isIndented: Bool) { self.isIndented = isIndented }

    private mutating func write(_ value: Value, nesting: Int) {
        switch value {
        case .boolean(let value): text += value ? "true" : "false"
        case .integer(let number): text += "\(number)"
        case .real(let number) where number.isFinite: text += number.description
        case .real(let number): tag(.real, .string(Text(RealText.text(number))), nesting)
        case .string(let string): quote(string.string)
        case .data(let bytes): tag(.data, .string(Text(Base64.encode(bytes))), nesting)
        case .date(let seconds): tag(.date, DateText.text(seconds).map { .string(Text($0)) } ?? .real(seconds), nesting)
        case .array(let values):
            list("[", "]", values, nesting) { $0.write($1, nesting: nesting + 1) }
        case .dictionary(let values):
            if values.count == 1, let (key, value) = values.first, JSONTag(rawValue: key.string) != nil {
                tag(.dictionary, .array([.string(key), value]), nesting)
            } else {
                write(values, nesting)
            }
        }
    }

    private mutating func write(_ values: [Text: Value], _ nesting: Int) {
        list("{", "}", values.sorted { $0.key < $1.key }, nesting) { writer, entry in
            writer.quote(entry.key.string)
            writer.text += writer.isIndented ? ": " : ":"
            writer.write(entry.value, nesting: nesting + 1)
        }
    }

    private mutating func tag(_ tag: JSONTag, _ value: Value, _ nesting: Int) {
        text += "{\"\(tag.rawValue)\":\(isIndented ? " " : "")"
        write(value, nesting: nesting)
        text += "}"
    }

    private mutating func list<Element>(
        _ start: String, _ end: String, _ elements: [Element], _ nesting: Int,
        _ write: (inout JSONWriter, Element) -> Void
    ) {
        text += start
        for (index, element) in elements.enumerated() {
            if index > 0 { text += "," }
            newLine(nesting + 1)
            write(&self, element)
        }
        if !elements.isEmpty { newLine(nesting) }
        text += end
    }

    private mutating func newLine(_ nesting: Int) {
        if isIndented { text += "\n" + String(repeating: "  ", count: nesting) }
    }

    private mutating func quote(_ string: String) {
        text += "\""
        for scalar in string.unicodeScalars {
            switch scalar {
            case "\"", "\\": text += "\\\(scalar)"
            case "\n": text += "\\n"
            case "\t": text += "\\t"
            case _ where scalar.isHidden: text += "\\u" + scalar.fourDigits
            default: text.unicodeScalars.append(scalar)
            }
        }
        text += "\""
    }
}
