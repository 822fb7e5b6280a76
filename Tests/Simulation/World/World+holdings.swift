// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import Replication
internal import StoreEngine

// What devices and remotes hold, for people who look for the cause of a broken rule.

extension World {
    /// What devices and remotes hold, line by line.
    var holdings: [String] {
        var lines: [String] = []
        for device in devices {
            lines.append("device \(device.number)\(device.isGone ? ", gone" : ""), clock \(device.clock):")
            for store in 0..<conditions.stores { lines.append("  store \(store): \(device.state(of: store).summary)") }
        }
        for place in places {
            for view in place.kind == .server ? [0] : Array(devices.map(\.number)) {
                lines.append("account \(place.number), as seen by \(view):")
                for (name, blob) in place.objects(seenBy: view) {
                    lines.append("  \(name): \(Device.summary(of: blob))")
                }
            }
        }
        return lines
    }
}

extension StoreState {
    /// Entries as key=n@origin:time, with a minus before tombstones; the version vector as n@origin.
    var summary: String {
        let entries = entries.sorted { $0.key < $1.key }.map { key, entry in
            "\(entry.value == nil ? "-" : "")\(key.string)=\(entry.n)@\(entry.stamp.origin.summary):\(entry.stamp.wall % 10_000_000_000)"
        }
        return "\(entries.joined(separator: " ")) | \(vector.summary)"
    }
}

extension VersionVector {
    var summary: String {
        dots.map { "\($0.n)@\($0.origin.summary)" }.joined(separator: " ")
    }
}

extension Origin {
    var summary: String { String(description.prefix(4)) }
}
