// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// How a desktop looks.
public enum Style: String, CaseIterable, Sendable {
    case light, dark, contrast, german
    /// Texts have twice their size, as GNOME's `text-scaling-factor` of 2 makes them.
    case large
    /// The screen is the smallest that GNOME's programs are made for, a telephone's on its side.
    case small

    /// Those in which the texts are the sources'.
    public static let english = allCases.filter { $0 != .german }

    /// A text of the sources as it is shown.
    public func text(_ english: String) -> String {
        self == .german ? Translations.german[english] ?? english : english
    }

    /// The screen's width and height.
    var size: String { self == .small ? "360x294" : "900x700" }

    /// What it is for GTK and gettext.
    var environment: [String: String] {
        switch self {
        case .dark: ["ADW_DEBUG_COLOR_SCHEME": "prefer-dark"]
        case .contrast: ["ADW_DEBUG_HIGH_CONTRAST": "1"]
        case .german: ["LANGUAGE": "de"]
        case .light, .large, .small: [:]
        }
    }

    /// Writes what X programs read in a user's home.
    func configure(home: String) throws {
        guard self == .large else { return }
        // As GNOME's daemon of settings does it: the factor is part of the resolution, which is usually 96 dots per inch.
        try "Xft.dpi: 192\n".write(toFile: home + "/.Xdefaults", atomically: false, encoding: .utf8)
    }
}
