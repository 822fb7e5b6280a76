// SPDX-License-Identifier: Apache-2.0

internal import GLibLoop
package import PropertyList
internal import PropertyListFiles
package import UbiquitousStore

/// What the page of an app's store shows.
package struct StorePage: Equatable, Sendable {
    /// A setting.
    package struct Row: Equatable, Identifiable, Sendable {
        /// The key.
        package var id: Text
        package var title: String
        /// The value, as JSON.
        package var subtitle: String
    }

    /// The settings, sorted by key.
    package var rows: [Row]

    package init(_ values: [Text: Value]) {
        rows = values.map { Row(id: $0, title: $0.string.shown, subtitle: ValueLine.text($1)) }
            .sorted { ($0.title, $0.id) < ($1.title, $1.id) }
    }
}

/// Earlier values of a key.
package struct HistoryPage: Equatable, Sendable {
    /// An earlier value.
    package struct Row: Equatable, Sendable {
        package var value: Value
        package var title: String
        /// When the value was replaced, where it came from, and why it was replaced.
        package var subtitle: String
    }

    /// The earlier values, the newest first.
    package var rows: [Row]

    /// - Parameters:
    ///   - devices: the devices' names, by identifier.
    ///   - now: microseconds since 1970-01-01T00:00:00Z.
    package init(_ entries: [HistoryEntry], devices: [String: String], now: UInt64) {
        rows = entries.map { entry in
            let device = devices[entry.originDevice].map { tr("from %1", $0.quoted) }
            let parts = [Age.text(of: entry.time, at: now), device, Self.reason(entry.why)]
            return Row(
                value: entry.value, title: ValueLine.text(entry.value),
                subtitle: parts.compactMap(\.self).joined(separator: " · "))
        }
    }

    private static func reason(_ why: String) -> String? {
        switch why {
        case "replaced": tr("replaced here")
        case "removed": tr("removed here")
        case "initial-sync": tr("the account had another value")
        case "account": tr("the account was switched")
        case "merge": tr("changed on another device")
        default: nil
        }
    }
}

/// A value on one line.
enum ValueLine {
    /// Returns a value as JSON, but strings as they are, and of data only the size.
    static func text(_ value: Value) -> String {
        if case .string(let text) = value { return text.string.isEmpty ? tr("Empty text") : text.string.shown }
        if case .data(let bytes) = value { return trn("%1 byte of data", "%1 bytes of data", bytes.count) }
        return JSONWriter.write(value).shown
    }
}
