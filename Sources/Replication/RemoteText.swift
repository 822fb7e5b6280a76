// SPDX-License-Identifier: Apache-2.0

extension String {
    /// The text as a message on the bus, a log or a terminal can show it, whoever wrote it: what controls one of these is
    /// replaced, and what is too long is cut and ends with an ellipsis.
    ///
    /// - Parameter limit: the most bytes of UTF-8; at least 3.
    package func readable(atMost limit: Int) -> String {
        if utf8.count <= limit, unicodeScalars.allSatisfy({ !$0.isControl }) { return self }
        var text = String.UnicodeScalarView()
        var bytes = 0
        for scalar in unicodeScalars {
            let scalar = scalar.isControl ? "\u{FFFD}" : scalar
            bytes += UTF8.width(scalar)
            // Room for the ellipsis, which may not be needed.
            guard bytes <= limit - 3 else { return String(text) + "…" }
            text.append(scalar)
        }
        return String(text)
    }
}

extension Unicode.Scalar {
    /// U+0000 ends texts on the bus, control characters steer terminals, and some others the direction of what follows.
    fileprivate var isControl: Bool {
        switch value {
        case 0..<0x20, 0x7F..<0xA0, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }
}
