// SPDX-License-Identifier: Apache-2.0

/// Sizes for users.
enum SizeText {
    /// Returns a size such as `512 B`, `12.5 KiB` or `1 MiB`.
    static func text(_ bytes: Int) -> String {
        if bytes < 1024 { return "\(bytes) B" }
        let isLarge = bytes >= 1 << 20
        let tenths = (Double(bytes) * 10 / (isLarge ? 1_048_576 : 1024)).rounded()
        let number = tenths / 10
        return "\(number == number.rounded() ? "\(Int(number))" : "\(number)") \(isLarge ? "MiB" : "KiB")"
    }

    /// Returns a bar of `width` characters, filled by a share from 0 to 1; any share above 0 fills at least one.
    static func bar(_ share: Double, width: Int = 20) -> String {
        let filled = share <= 0 ? 0 : max(1, min(width, Int((share * Double(width)).rounded(.down))))
        return String(repeating: "█", count: filled) + String(repeating: "░", count: width - filled)
    }
}
