// SPDX-License-Identifier: Apache-2.0

internal import Replication

/// What a backend remembers as long as it lives.
struct EtcdMemory {
    /// Up to where this device has joined everything, or written it itself.
    var joined: EtcdPosition?
    /// What the cluster has then of each store, as far as it is known.
    var outlines = EtcdOutlines()
    /// The cursor that ``joined`` goes on from.
    var cursor: [UInt8]?
    /// The last transaction of this device's after that cursor was given. Others may have been faster, so that
    /// ``joined`` is older; a cluster that does not know the transaction was restored from a copy all the same.
    var lastToken: UInt64?
    /// Under which that was joined.
    var origin: Origin?
    /// This device has to publish all that it has.
    var isOwing = false

    /// Who publishes, once it was read.
    var devices: [Origin: EtcdDevice]?

    /// The last publications of this process, and the one that its first look found where nothing else is known.
    private var ownPublications: [(device: EtcdDevice, origin: Origin)] = []
    /// By the origins under whose name a pull has looked: the publications up to this count are of processes before this
    /// one, or too old to be among ``ownPublications``.
    private var inherited: [Origin: UInt64] = [:]

    /// What became of the publication under an origin, by its row. What was published is joined, and stays if somebody
    /// removes the row.
    /// - Parameter count: how often the database says that something was about to be published under the origin; 0 if
    ///   that is not known.
    mutating func look(
        at device: EtcdDevice?, under origin: Origin, published count: UInt64
    ) -> OwnPublication {
        if !hasLooked(under: origin) {
            inherited[origin] = count
            if let device, count == 0 { note(device, under: origin) }
            // What was counted last came to nothing, or was lost when the cluster was restored from a copy.
            if device?.count ?? 0 < count { isOwing = isOwing || Rule.knownHistory.isOn }
        }
        guard let device else { return isOwing ? .missing : .asPublished }
        if !isOwn(device, under: origin) { return .foreign }
        return isOwing ? .missing : .asPublished
    }

    func hasLooked(under origin: Origin) -> Bool { inherited[origin] != nil }

    /// Whether this device has written a row under an origin. Processes before this one may have: a row of theirs
    /// arrives late, or comes back with a cluster that is restored from a copy.
    func isOwn(_ device: EtcdDevice, under origin: Origin) -> Bool {
        if ownPublications.contains(where: { $0.device.publication == device.publication }) { return true }
        return device.count > 0 && device.count <= inherited[origin, default: 0]
    }

    /// Remembers a publication that is about to be made, since its answer may be lost.
    mutating func note(_ device: EtcdDevice, under origin: Origin) {
        ownPublications.append((device, origin))
        guard ownPublications.count > Self.mostPublications else { return }
        let (oldest, former) = ownPublications.removeFirst()
        if let count = inherited[former] { inherited[former] = max(count, oldest.count) }
    }

    private static let mostPublications = 1024

    /// Notes who publishes: all rows of devices, or those that have changed.
    mutating func note(devices rows: [EtcdRow], _ layout: EtcdLayout) {
        var devices = devices ?? [:]
        for row in rows {
            let name = String(decoding: row.key.dropFirst(layout.devices.count), as: UTF8.self)
            // A name is for people; one that can't be read is not told.
            guard let origin = Origin(name), let device = try? EtcdDevice(decoding: row.value) else { continue }
            guard devices.count < EtcdLimits.devices || devices[origin] != nil else { continue }
            devices[origin] = device
        }
        self.devices = devices
    }

    /// Notes up to where everything is joined.
    /// - Returns: the cursor to go on from.
    mutating func note(
        _ look: EtcdLook, _ origin: Origin, joined: Set<String>, _ wholes: EtcdOutlines, _ deltas: EtcdOutlines,
        missing: Set<String>
    ) -> [UInt8] {
        (self.joined, self.origin, lastToken) = (look.position, origin, nil)
        for store in joined {
            var outline = wholes[store]
            if let delta = deltas[store] {
                outline = outlines[store]
                outline?.take(delta)
            }
            // What there was no room for is not known any more.
            outlines[store] = outline
        }
        for store in missing { outlines[store] = nil }
        var cursor = EtcdCursor(revision: look.position.revision, token: look.position.token)
        (cursor.missing, cursor.isOwing, cursor.cluster) = (missing, isOwing, look.cluster)
        self.cursor = cursor.encoded
        return cursor.encoded
    }
}
