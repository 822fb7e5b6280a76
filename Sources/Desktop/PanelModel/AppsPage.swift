// SPDX-License-Identifier: Apache-2.0

internal import GLibLoop
package import PropertyList
internal import UbiquitousStore

/// An app's store, and how full it is.
package struct AppUsage: Equatable, Sendable {
    package var identifier: String
    /// The app that the store's manifest names.
    package var application: String?
    package var keys: Int
    package var bytes: Int
    package var limits: Limits
    package var isSynchronized: Bool

    package init(
        identifier: String, application: String? = nil, keys: Int = 0, bytes: Int = 0, limits: Limits = .standard,
        isSynchronized: Bool = true
    ) {
        (self.identifier, self.application, self.keys, self.bytes) = (identifier, application, keys, bytes)
        (self.limits, self.isSynchronized) = (limits, isSynchronized)
    }

    /// The share of keys or bytes that is in use, whichever is greater; 1 is full, and a merge can make it more.
    package var share: Double { max(shareOfKeys, shareOfBytes) }

    /// Whether more of the keys than of the bytes is in use.
    var isMainlyKeys: Bool { shareOfKeys > shareOfBytes }

    private var shareOfKeys: Double { Double(keys) / Double(max(1, limits.keys)) }
    private var shareOfBytes: Double { Double(bytes) / Double(max(1, limits.totalBytes)) }
}

/// What the apps page shows.
package struct AppsPage: Equatable, Sendable {
    /// An app's store.
    package struct Row: Equatable, Identifiable, Sendable {
        /// The store's identifier.
        package var id: String
        /// The app's name if it is installed, and otherwise the identifier.
        package var title: String
        package var subtitle: String
        /// The name of the app's icon.
        package var icon: String?
        /// How full the store is, from 0 to 1.
        package var share: Double
        package var level: Level
        package var isSynchronized: Bool
        package var isEmpty: Bool
    }

    /// How full a store is.
    package enum Level: Sendable { case usual, nearlyFull, full }

    /// An installed app.
    package struct Application: Equatable, Sendable {
        package var name: String
        package var icon: String?

        package init(name: String, icon: String?) { (self.name, self.icon) = (name, icon) }
    }

    /// The stores, sorted by their apps' names.
    package var rows: [Row]

    /// - Parameter application: returns the installed app with an identifier.
    package init(_ apps: [AppUsage], application: (String) -> Application?) {
        let found = apps.map { app in
            let installed = application(app.application ?? app.identifier)
            return Row(
                id: app.identifier, title: (installed?.name ?? app.identifier).shown, subtitle: Self.subtitle(app),
                icon: installed?.icon, share: min(1, app.share), level: Self.level(app.share),
                isSynchronized: app.isSynchronized, isEmpty: app.keys == 0)
        }
        rows = found.map { (key: sortingKey($0.title), row: $0) }
            .sorted { $0.key == $1.key ? $0.row.id < $1.row.id : $0.key.lexicographicallyPrecedes($1.key) }
            .map(\.row)
    }

    /// The rows of apps whose names or identifiers contain a text, in any case.
    package func rows(matching text: String) -> [Row] {
        let text = text.lowercased()
        return text.isEmpty ? rows : rows.filter { ($0.title + "\n" + $0.id).lowercased().contains(text) }
    }

    /// Whether there are so many apps that users search for one.
    package var isLong: Bool { rows.count > 12 }

    private static func level(_ share: Double) -> Level {
        share < 0.9 ? .usual : share < 1 ? .nearlyFull : .full
    }

    private static func subtitle(_ app: AppUsage) -> String {
        if app.keys == 0 { return tr("No settings yet") }
        let level = level(app.share)
        let (count, size) = (trn("%1 setting", "%1 settings", app.keys), sizeText(app.bytes))
        // The limit that is near, if one is.
        let usage =
            level != .usual && app.isMainlyKeys
            ? tr("%1 of %2 settings · %3", "\(app.keys)", "\(app.limits.keys)", size)
            : tr("%1 · %2 of %3", count, size, sizeText(app.limits.totalBytes))
        switch level {
        case .usual: return usage
        case .nearlyFull: return tr("%1 · nearly full", usage)
        case .full: return tr("%1 · full: remove some settings in the app", usage)
        }
    }
}
