// SPDX-License-Identifier: Apache-2.0

internal import GLibLoop

/// A color as Apple's sample numbers it.
package enum BackgroundColor: Int, CaseIterable, Sendable {
    case white, red, green, yellow

    /// The color's name for users.
    @MainActor package var name: String {
        switch self {
        case .white: tr("White")
        case .red: tr("Red")
        case .green: tr("Green")
        case .yellow: tr("Yellow")
        }
    }

    /// The style class of a window with this color.
    package var style: String { "color-\(rawValue)" }

    /// Text stays dark on these colors in every style of the desktop. The rows have a color of their own, because in
    /// the dark style they are translucent and their text is white.
    package static let styleSheet = """
        window.prefs headerbar, window.prefs headerbar * { color: #241f31; }
        window.prefs list.boxed-list { background-color: @popover_bg_color; color: @popover_fg_color; }
        window.color-0 { background: #ffffff; }
        window.color-1 { background: #f66151; }
        window.color-2 { background: #8ff0a4; }
        window.color-3 { background: #f9f06b; }
        """
}
