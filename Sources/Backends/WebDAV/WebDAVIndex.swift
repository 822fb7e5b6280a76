// SPDX-License-Identifier: Apache-2.0

// Servers without PROPFIND have an index of a folder: a page, or a list in JSON. An index without names looks like any
// other page, and such a page may have replaced everything that the server had.

internal import HTTPClient
internal import Replication

/// The indexes of the account's folder and of the folders in it.
struct WebDAVIndex {
    let folder: WebDAVFolder

    /// Returns every word in a folder's index that looks like a name; `nil` if there is no such folder.
    func names(in subfolder: String) async throws(RemoteError) -> Set<String>? {
        let response = try await folder.send(
            HTTPRequest("GET", folder.address(subfolder + "/"), limit: Self.mostBytes))
        switch response.status {
        case 200:
            let words = response.body.split { !Self.isPartOfName($0) }.map { String(decoding: $0, as: UTF8.self) }
            return Set(words.filter(WebDAVFolder.mayBeOurs))
        case 404, 410: return nil
        default: break
        }
        if [401, 423, 429].contains(response.status) || response.status >= 500 {
            throw folder.failure(response, at: subfolder)
        }
        throw RemoteError(
            .unsupported,
            "\(folder.host) lists no folders: it has neither PROPFIND nor an index "
                + "(for nginx: the module dav-ext, or autoindex).")
    }

    private static let mostBytes = 4 << 20

    private static func isPartOfName(_ byte: UInt8) -> Bool {
        Character(Unicode.Scalar(byte)).isLetter && byte < 0x80 || (0x30...0x39).contains(byte) || byte == 0x2D
    }

    /// Checks that the index names a new file. Until it does, a missing account doesn't count as removed.
    func check() async throws(RemoteError) {
        if try await names(in: "") == nil { throw folder.missingFolder }
        let name = WebDAVFolder.probeName + "index"
        let response = try await folder.write(name, [1])
        if [405, 501].contains(response.status) { throw folder.notWebDAV }
        guard response.isDone else { throw folder.failure(response, at: name) }
        let isNamed = try await names(in: "")?.contains(name) == true
        try await folder.delete(name)
        if !isNamed { throw folder.notWebDAV }
    }
}
