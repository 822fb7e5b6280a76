// SPDX-License-Identifier: Apache-2.0

// A module as Xcode's template sets it up: all that doesn't say otherwise is the main actor's, conformances included.

import Foundation
import UbiquitousStore

struct Theme: RawRepresentable { var rawValue: String }

struct Tools: OptionSet {
    let rawValue: Int
    static let ruler = Tools(rawValue: 1)
}

enum Look: Int { case light, dark }

struct Profile: Codable, Equatable { var name = "" }

extension UserDefaults {
    var fontSize: Int { integer(forKey: "fontSize") }
}

extension UserDefaults.Key<Profile> {
    static var profile: Self { Self("profile", default: Profile()) }
}

extension UserDefaults.Key<Int> {
    static var width: Self { Self("width", default: 80) }
}

extension UbiquitousStore.Key<Profile> {
    static var profile: Self { Self("profile") }
}

/// Uses settings of every kind.
public final class Editor {
    private let defaults: UserDefaults
    @AppStorage private var theme: Theme
    @AppStorage private var tools: Tools
    @AppStorage private var look: Look
    @AppStorage private var other: Theme?
    /// The font sizes that were observed.
    public private(set) var sizes: [Int] = []
    private var token: NSKeyValueObservation?

    /// Makes an editor on these settings.
    public init(_ defaults: UserDefaults) {
        self.defaults = defaults
        _theme = AppStorage(wrappedValue: Theme(rawValue: "plain"), "theme", store: defaults)
        _tools = AppStorage(wrappedValue: [], "tools", store: defaults)
        _look = AppStorage(wrappedValue: .light, "look", store: defaults)
        _other = AppStorage("other", store: defaults)
        token = defaults.observe(\.fontSize, options: [.initial, .new]) { [weak self] _, change in
            let size = change.newValue ?? 0
            Task { @MainActor in self?.sizes.append(size) }
        }
    }

    /// Writes settings, and returns what they are then.
    public func write() async throws -> [String] {
        theme.rawValue = "dark"
        tools.insert(.ruler)
        (look, other) = (.dark, theme)
        defaults[.profile].name = "Ada"
        try await defaults.set(Profile(name: defaults[.profile].name + " L"), for: .profile)
        try await defaults.update { try $0.set(100, for: .width) }
        var found = [theme.rawValue, "\(tools.rawValue)", "\(look)", other?.rawValue ?? ""]
        for await theme in $theme.values {
            found.append(theme.rawValue)
            break
        }
        for await profile in defaults.values(of: .profile) {
            found.append(profile.name)
            break
        }
        for await width in defaults.values(of: .width) {
            found.append("\(width)")
            break
        }
        return found
    }

    /// Does the same in a store.
    func write(in store: UbiquitousStore) async throws -> Profile? {
        store[.profile] = Profile(name: "Ada")
        try await store.set(Profile(name: "Ada"), for: .profile)
        return try await store.value(for: .profile)
    }

    /// Ends the observation.
    public func end() { token?.invalidate() }
}
