// SPDX-License-Identifier: Apache-2.0

extension String {
    /// The text as it may be shown and sent: bounded, and without control characters and noncharacters.
    ///
    /// D-Bus can't carry U+0000, libsystemd reads no noncharacters, and control characters steer terminals. Each is replaced
    /// by U+FFFD. What is too long ends with an ellipsis.
    public func cleaned(atMost bytes: Int) -> String {
        if utf8.count <= bytes, unicodeScalars.allSatisfy(\.isPlain) { return self }
        var text = String.UnicodeScalarView()
        var count = 0
        for scalar in unicodeScalars {
            let scalar = scalar.isPlain ? scalar : "\u{FFFD}"
            count += UTF8.width(scalar)
            // Room for the ellipsis.
            if count > bytes - 3 {
                text.append("\u{2026}")
                break
            }
            text.append(scalar)
        }
        return String(text)
    }
}

extension Unicode.Scalar {
    fileprivate var isPlain: Bool {
        switch value {
        case 0..<0x20, 0x7F..<0xA0, 0x2028, 0x2029, 0xFDD0..<0xFDF0: false
        default: value & 0xFFFE != 0xFFFE
        }
    }
}
