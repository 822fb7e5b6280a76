// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Colours, on terminals that have them and for users who want them (https://no-color.org).
struct Style {
    private let isColoured: Bool

    /// Makes the style for output to a descriptor.
    init(for descriptor: Int32) {
        isColoured = isatty(descriptor) == 1 && Variable.noColor.value == nil && Variable.terminal.value != "dumb"
    }

    /// Returns the width of a terminal in columns; `nil` if the descriptor isn't a terminal or doesn't say.
    static func width(of descriptor: Int32) -> Int? {
        var size = winsize()
        guard isatty(descriptor) == 1, ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else {
            return nil
        }
        return Int(size.ws_col)
    }

    /// Returns about how many columns a text takes, without its colour codes.
    static func columns(_ text: String) -> Int {
        var isEscape = false
        return text.reduce(0) { count, character in
            if character == "\u{1B}" { isEscape = true }
            defer { if character == "m" { isEscape = false } }
            return isEscape ? count : count + 1
        }
    }

    func bold(_ text: String) -> String { wrap(text, 1) }
    func dim(_ text: String) -> String { wrap(text, 2) }
    func red(_ text: String) -> String { wrap(text, 31) }
    func green(_ text: String) -> String { wrap(text, 32) }
    func yellow(_ text: String) -> String { wrap(text, 33) }

    /// Returns a text in green, yellow or red, depending on how full something is, from 0 to 1.
    func byFullness(_ share: Double, _ text: String) -> String {
        share < 0.7 ? green(text) : share < 0.9 ? yellow(text) : red(text)
    }

    private func wrap(_ text: String, _ code: Int) -> String {
        isColoured ? "\u{1B}[\(code)m\(text)\u{1B}[0m" : text
    }
}
