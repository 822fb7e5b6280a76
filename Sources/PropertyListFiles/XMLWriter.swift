// SPDX-License-Identifier: Apache-2.0

internal import PropertyList

/// Writes Apple's XML property lists.
///
/// Apple's readers accept only dates in whole seconds. A finer date is written with its fraction, and one without an
/// exact text as seconds since 2001; ``XMLReader`` reads both.
struct XMLWriter {
    private var text = """
        <?xml version="1.0" encoding="UTF-8"?>
        <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
        <plist version="1.0">

        """

    static func write(_ value: Value) throws(UnwritableText) -> [UInt8] {
        var writer = XMLWriter()
        try writer.write(value, nesting: 0)
        writer.text += "</plist>\n"
        return Array(writer.text.utf8)
    }

    private mutating func write(_ value: Value, nesting: Int) throws(UnwritableText) {
        switch value {
        case .boolean(let value): line(value ? "<true/>" : "<false/>", nesting)
        case .integer(let number): line("<integer>\(number)</integer>", nesting)
        case .real(let number): line("<real>\(Self.text(number))</real>", nesting)
        case .string(let string): line("<string>\(try Self.escaped(string.string))</string>", nesting)
        case .data(let bytes): line("<data>\(Base64.encode(bytes))</data>", nesting)
        case .date(let seconds): line("<date>\(DateText.text(seconds) ?? seconds.description)</date>", nesting)
        case .array(let values):
            if values.isEmpty { return line("<array/>", nesting) }
            line("<array>", nesting)
            for value in values { try write(value, nesting: nesting + 1) }
            line("</array>", nesting)
        case .dictionary(let values):
            if values.isEmpty { return line("<dict/>", nesting) }
            line("<dict>", nesting)
            for (key, value) in values.sorted(by: { $0.key < $1.key }) {
                do throws(UnwritableText) {
                    line("<key>\(try Self.escaped(key.string))</key>", nesting + 1)
                    try write(value, nesting: nesting + 1)
                } catch {
                    throw UnwritableText(scalar: error.scalar, key: key)
                }
            }
            line("</dict>", nesting)
        }
    }

    private mutating func line(_ content: String, _ nesting: Int) {
        text += String(repeating: "\t", count: nesting) + content + "\n"
    }

    private static func text(_ real: Double) -> String {
        if real.isInfinite { return real < 0 ? "-infinity" : "+infinity" }
        return real.isNaN ? RealText.text(real) : real.description
    }

    private static func escaped(_ string: String) throws(UnwritableText) -> String {
        var escaped = ""
        for scalar in string.unicodeScalars {
            switch scalar {
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "&": escaped += "&amp;"
            // A reader would convert a bare one to a line feed.
            case "\r": escaped += "&#13;"
            case "\n", "\t": escaped.unicodeScalars.append(scalar)
            case "\u{0}"..."\u{1F}", "\u{FFFE}", "\u{FFFF}": throw UnwritableText(scalar: scalar, key: nil)
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}
