// SPDX-License-Identifier: Apache-2.0

internal import StoreEngine
public import SyncEngine

extension BlobBackend {
    /// Removes the heads of devices that were forgotten, once everything in them is joined here and published.
    public func tidy(_ request: Tidying) async throws(RemoteError) {
        let account = try await presentAccount()
        guard account.isNamed(request.account) else {
            throw RemoteError(.reset, "There is another account here than the one that is signed in.")
        }
        guard let published = memory.published, published.head.origin == request.origin else { return }
        for (digest, head) in memory.heads
        where request.forgottenOrigins.contains(head.origin) && head.origin != request.origin {
            guard memory.joinedHeads.contains(digest), published.head.dominates(head) else { continue }
            // It may have been written anew since the pull.
            guard try await readHead(of: head.origin)?.digest == digest else { continue }
            try await storage.delete(BlobName.head(head.origin))
        }
    }
}

extension Head {
    /// Whether everything that another head has seen was taken in here.
    func dominates(_ other: Head) -> Bool {
        other.parts.allSatisfy { store, part in
            part.context.seen.isEmpty || parts[store]?.context.isSuperset(of: part.context) == true
        }
    }
}
