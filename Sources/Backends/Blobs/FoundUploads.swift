// SPDX-License-Identifier: Apache-2.0

internal import BackendSupport
internal import Replication
internal import Sealing

/// What devices have uploaded to a remote, as far as a key opens it.
struct FoundUploads {
    /// The head that was uploaded last under the key.
    private var newest: Head?
    /// The unencrypted heads.
    private var unencrypted: [Head] = []
    /// How many heads could not be read.
    private var unread = 0

    /// Reads the heads in the remote.
    init(in storage: some BlobStorage, under held: HeldKey) async throws(RemoteError) {
        let (wrapping, share) = (Wrapping.sealed(held.key.blobs), RemoteBudget.shared.share())
        let listings = try await storage.list(BlobName.heads).filter { BlobName.origin(inHeadName: $0.name) != nil }
        for listing in listings.prefix(BlobName.mostHeads) {
            let content = try await storage.get(
                "\(BlobName.heads)/\(listing.name)", limit: wrapping.headLimit, unless: nil)
            guard case .content(let bytes, _) = content else { continue }
            let memory = DecodingMemory(in: share)
            defer { memory.release() }
            if let written = try? wrapping.head(bytes, in: memory) {
                if written.head.time >= newest?.time ?? 0 { newest = written.head }
            } else if let written = try? WrittenHead(decoding: bytes, in: memory) {
                unencrypted.append(written.head)
            } else {
                unread += 1
            }
        }
    }

    var check: BackendCheck {
        if let newest {
            return BackendCheck(
                step: "key", isPassed: true,
                detail: "It opens the account and what \"\(newest.device.name)\" uploaded last, on "
                    + "\(DayText.utc(newest.time)).")
        }
        guard unread == 0 else {
            return BackendCheck(
                step: "key", isPassed: false,
                detail: "It opens the account, but no upload in it: they are all damaged, or under another key."
            )
        }
        return BackendCheck(
            step: "key", isPassed: true, detail: "It opens the account, and nothing was uploaded under it yet.")
    }

    /// Returns a step about uploads and keys other than the account's; none if there are none.
    func leftovers(_ others: [SealedMarker], _ held: HeldKey) -> [BackendCheck] {
        var sentences: [String] = []
        if !unencrypted.isEmpty {
            let names = unencrypted.prefix(5).map { "\"\($0.device.name)\" on \(DayText.utc($0.time))" }
            sentences.append("Uploaded without encryption, and not read any more: by \(names.joined(separator: ", ")).")
        }
        if unread > 0 { sentences.append("Uploads that are damaged or under another key: \(unread).") }
        if !others.isEmpty {
            let names = others.sorted { $0.time > $1.time }.prefix(5).map {
                "\($0.identifier) (\(words(for: $0, held)))"
            }
            sentences.append("Other keys: \(names.joined(separator: ", ")).")
        }
        if sentences.isEmpty, !held.former.isEmpty, !held.former.areRemoved {
            sentences.append("Uploads from before the account got its key may still be in the remote.")
        }
        if sentences.isEmpty { return [] }
        // The service removes what is left from before a move. Later uploads are from a device that doesn't know of it.
        let isLate = !unencrypted.isEmpty && held.former.areRemoved
        return [BackendCheck(step: "leftovers", isPassed: !isLate, detail: sentences.joined(separator: " "))]
    }

    private func words(for marker: SealedMarker, _ held: HeldKey) -> String {
        let state =
            held.rejected.contains(marker.identifier)
            ? ", rejected" : held.former.keys.contains(marker.identifier) ? ", the account's before" : ""
        return "made \(DayText.utc(marker.time))\(state)"
    }
}
