// SPDX-License-Identifier: Apache-2.0

internal import Replication

/// What a backend remembers as long as it exists.
struct EtcdMemory {
    /// The position up to which this device has joined everything, or has written it itself.
    var joined: EtcdPosition?
    /// The cluster's stores at that position, as far as they are known.
    var outlines = EtcdOutlines()
    /// The cursor that ``joined`` continues from.
    var cursor: [UInt8]?
    /// The number of this device's last transaction since that cursor was given. ``joined`` may be older, if others
    /// were faster. A cluster that doesn't have the number counts as restored from a backup.
    var lastToken: UInt64?
    /// The origin under which that was joined.
    var origin: Origin?
    /// Whether this device has to publish everything that it has.
    var needsRepublication = false

    /// The devices that publish; `nil` until they are read.
    var devices: [Origin: EtcdDevice]?

    /// The last publications of this process, and the one that its first pull found if the database has no count.
    private var ownPublications: [(device: EtcdDevice, origin: Origin)] = []
    /// For each origin under which this process has polled: publications up to this count were made by earlier
    /// processes, or are too old to be among ``ownPublications``.
    private var inherited: [Origin: UInt64] = [:]

    /// Decides from the row under an origin what became of this device's publication. Without the row, what was
    /// published is still there, joined.
    /// - Parameter count: how many publications under the origin the database has counted; 0 if that is not known.
    mutating func look(
        at device: EtcdDevice?, under origin: Origin, published count: UInt64
    ) -> OwnPublication {
        if !hasLooked(under: origin) {
            inherited[origin] = count
            if let device, count == 0 { note(device, under: origin) }
            // The publication that was counted last failed, or was lost when the cluster was restored from a backup.
            if device?.count ?? 0 < count { needsRepublication = needsRepublication || Rule.knownHistory.isOn }
        }
        guard let device else { return needsRepublication ? .missing : .asPublished }
        if !isOwn(device, under: origin) { return .foreign }
        return needsRepublication ? .missing : .asPublished
    }

    func hasLooked(under origin: Origin) -> Bool { inherited[origin] != nil }

    /// Returns whether this device has written a row under an origin. An earlier process may have: its row can arrive
    /// late, or come back with a cluster that is restored from a backup.
    func isOwn(_ device: EtcdDevice, under origin: Origin) -> Bool {
        if ownPublications.contains(where: { $0.device.publication == device.publication }) { return true }
        return device.count > 0 && device.count <= inherited[origin, default: 0]
    }

    /// Remembers a publication that is about to be made. The response to it may be lost.
    mutating func note(_ device: EtcdDevice, under origin: Origin) {
        ownPublications.append((device, origin))
        guard ownPublications.count > Self.mostPublications else { return }
        let (oldest, former) = ownPublications.removeFirst()
        if let count = inherited[former] { inherited[former] = max(count, oldest.count) }
    }

    private static let mostPublications = 1024

    /// Notes the devices that publish: from all rows of devices, or from those that have changed.
    mutating func note(devices rows: [EtcdRow], _ layout: EtcdLayout) {
        var devices = devices ?? [:]
        for row in rows {
            let name = String(decoding: row.key.dropFirst(layout.devices.count), as: UTF8.self)
            // Names are only shown to users, so a corrupt row is skipped.
            guard let origin = Origin(name), let device = try? EtcdDevice(decoding: row.value) else { continue }
            guard devices.count < EtcdLimits.devices || devices[origin] != nil else { continue }
            devices[origin] = device
        }
        self.devices = devices
    }

    /// Notes the position up to which everything is joined.
    /// - Returns: the cursor for the next pull.
    mutating func note(
        _ look: EtcdPoll, _ origin: Origin, joined: Set<String>, _ wholes: EtcdOutlines, _ deltas: EtcdOutlines,
        missing: Set<String>
    ) -> [UInt8] {
        (self.joined, self.origin, lastToken) = (look.position, origin, nil)
        for store in joined {
            var outline = wholes[store]
            if let delta = deltas[store] {
                outline = outlines[store]
                outline?.take(delta)
            }
            // If there is no room for the outline, the store's state is no longer known.
            outlines[store] = outline
        }
        for store in missing { outlines[store] = nil }
        var cursor = EtcdCursor(revision: look.position.revision, token: look.position.token)
        (cursor.missing, cursor.needsRepublication, cursor.cluster) = (missing, needsRepublication, look.cluster)
        self.cursor = cursor.encoded
        return cursor.encoded
    }
}
