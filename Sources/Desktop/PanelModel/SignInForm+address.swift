// SPDX-License-Identifier: Apache-2.0

internal import GLibLoop
internal import HTTPClient
internal import RemoteAddress

// Users enter the address that their browser shows, or just a name. This makes the service's address of it, and reports
// what the service would refuse at the field, before anything is sent.

extension SignInForm {
    /// Returns the address for the service.
    ///
    /// - Throws: ``FieldError`` if something is missing or invalid.
    package func address() throws(FieldError) -> String {
        if let renewed { return renewed }
        let place = text(kind.placeField)
        if place.isEmpty { throw flaw(tr("Enter where the account is.")) }
        if place.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) {
            throw flaw(tr("It contains invisible characters. Type it again."))
        }
        switch kind {
        case .nextcloud: return try nextcloudAddress(try server(place))
        case .webDAV: return try webDAVAddress(try server(place))
        case .folder: return try folderAddress(place)
        case .etcd: return try etcdAddress(place)
        }
    }

    private func flaw(_ sentence: String) -> FieldError { FieldError(field: kind.placeField, sentence: sentence) }

    // MARK: Servers

    /// Returns the server that was typed, with its path.
    func server(_ typed: String) throws(FieldError) -> HTTPAddress {
        var text = typed
        for (scheme, meant) in zip(BackendKind.webDAV.schemes, ["https", "http"])
        where text.lowercased().hasPrefix(scheme + "://") {
            text = meant + text.dropFirst(scheme.count)
        }
        if !text.contains("://") { text = "https://" + text }
        let authority = RemoteAddress.authority(of: text)
        let afterScheme = text[authority.startIndex...]
        if authority.contains("@") {
            throw flaw(tr("Leave the name and password out of the address: they have fields of their own."))
        }
        if authority.contains(where: \.isWhitespace) { throw flaw(tr("There are spaces in the server's name.")) }
        if afterScheme.contains("?") || afterScheme.contains("#") {
            throw flaw(tr("The address contains “?” or “#”: enter only the part before it."))
        }
        let path = PercentCoding.encode(
            PercentCoding.decode(afterScheme.dropFirst(authority.count))
                ?? String(afterScheme.dropFirst(authority.count)),
            keeping: "/")
        guard let address = HTTPAddress(text.prefix(upTo: authority.endIndex) + path) else {
            throw flaw(tr("This is not a server's address, such as https://cloud.example.org."))
        }
        return address
    }

    private func nextcloudAddress(_ server: HTTPAddress) throws(FieldError) -> String {
        let (user, folder) = (text(.user), text(.folder))
        if user.isEmpty { throw FieldError(field: .user, sentence: tr("Enter the user name.")) }
        if user.contains("/") { throw FieldError(field: .user, sentence: tr("A user name has no slashes.")) }
        let parts = folder.split(separator: "/")
        if parts.isEmpty || parts.contains(where: { $0 == "." || $0 == ".." }) {
            throw FieldError(field: .folder, sentence: tr("Enter the name of a folder, such as Settings."))
        }
        let path = parts.map { PercentCoding.encode(String($0)) }.joined(separator: "/")
        return server.davOrigin + server.nextcloudRoot + "/remote.php/dav/files/\(PercentCoding.encode(user))/\(path)"
    }

    private func webDAVAddress(_ server: HTTPAddress) throws(FieldError) -> String {
        if server.path == "/" {
            throw flaw(tr("Say in which folder of the server, as in https://dav.example.org/settings."))
        }
        return server.davOrigin + server.path
    }

    // MARK: Others

    private func folderAddress(_ place: String) throws(FieldError) -> String {
        let path = place.lowercased().hasPrefix("folder://") ? PercentCoding.decode(place.dropFirst(9)) ?? place : place
        guard path.hasPrefix("/") else { throw flaw(tr("Enter the whole path. It begins with a slash.")) }
        return "folder://" + PercentCoding.encode(path, keeping: "/")
    }

    private func etcdAddress(_ place: String) throws(FieldError) -> String {
        let isPlain = ["http", BackendKind.etcd.name].contains { place.lowercased().hasPrefix($0 + "://") }
        let members = place.split(separator: ",").map { member -> String in
            let host = String(member.split(separator: "://").last ?? "")
            return String(host.prefix { $0 != "/" }).trimmed
        }
        for member in members {
            if member.contains("@") {
                throw flaw(tr("Leave the name and password out of the address: they have fields of their own."))
            }
            guard HTTPAddress.split(member) != nil else { throw flaw(tr("“%1” is not a server name.", member.shown)) }
        }
        let prefix = text(.prefix).split(separator: "/").map { PercentCoding.encode(String($0)) }.joined(separator: "/")
        if prefix.isEmpty {
            throw FieldError(field: .prefix, sentence: tr("Enter where in the cluster, as in settings/ada."))
        }
        return "\(BackendKind.etcd.scheme(isSecure: !isPlain))://\(members.joined(separator: ","))/\(prefix)"
    }
}

extension HTTPAddress {
    /// The server's origin, with the service's schemes.
    fileprivate var davOrigin: String {
        BackendKind.webDAV.scheme(isSecure: isSecure) + origin.drop { $0 != ":" }
    }

    /// The path of Nextcloud on the server, whichever of its pages the user copied from the browser.
    var nextcloudRoot: String {
        var root = path[...]
        for page in ["/index.php", "/remote.php", "/apps/", "/login", "/settings/"] {
            if let range = root.firstRange(of: page) { root = root[..<range.lowerBound] }
        }
        while root.hasSuffix("/") { root.removeLast() }
        return String(root)
    }
}
