// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// The appearance of a desktop.
public enum Style: String, CaseIterable, Sendable {
    case light, dark, contrast, german
    /// Texts have twice their size, as with GNOME's `text-scaling-factor` of 2.
    case large
    /// The screen is the smallest for which GNOME's programs are made, a phone's in landscape.
    case small

    /// The styles in which texts are shown as in the sources.
    public static let english = allCases.filter { $0 != .german }

    /// Returns a text of the sources as it is shown.
    public func text(_ english: String) -> String {
        self == .german ? Translations.german[english] ?? english : english
    }

    /// The screen's width and height.
    var size: String { self == .small ? "360x294" : "900x700" }

    /// The environment variables that select the style in GTK and gettext.
    var environment: [String: String] {
        switch self {
        case .dark: ["ADW_DEBUG_COLOR_SCHEME": "prefer-dark"]
        case .contrast: ["ADW_DEBUG_HIGH_CONTRAST": "1"]
        case .german: ["LANGUAGE": "de"]
        case .light, .large, .small: [:]
        }
    }

    /// Writes the files in a user's home that X programs read.
    func configure(home: String) throws {
        guard self == .large else { return }
        // As in GNOME's settings daemon, the factor is part of the resolution, which is usually 96 dots per inch.
        try "Xft.dpi: 192\n".write(toFile: home + "/.Xdefaults", atomically: false, encoding: .utf8)
    }
}
