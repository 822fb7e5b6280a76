// SPDX-License-Identifier: Apache-2.0

internal import GLibLoop
internal import RemoteAddress

// New credentials of the account that is signed in. Its location is shown in the fields where it was entered, and can't
// be changed.

extension SignInForm {
    /// Makes a form for new credentials.
    ///
    /// - Parameter address: the account's, as the service has it.
    package init(renewing address: String) {
        self.init(at: address)
        (renewed, encrypts) = (address, false)
    }

    /// Makes the form for an account at an address, which the user may change.
    package init(at address: String) {
        let isSecure = BackendKind.find(address).map { RemoteAddress.scheme(of: address) != $0.name } ?? true
        let place = address.firstRange(of: "://").map { address[$0.upperBound...] } ?? address[...]
        let server = (isSecure ? "https://" : "http://") + place
        switch BackendKind.find(address) {
        case .folder:
            self.init(.folder)
            values[.path] = Self.decoded(place)
        case .etcd:
            self.init(.etcd)
            let members = place.prefix { $0 != "/" }
            values[.members] = isSecure ? String(members) : "http://" + members
            values[.prefix] = Self.decoded(place.dropFirst(members.count + 1))
        default:
            guard let files = server.firstRange(of: "/remote.php/dav/files/") else {
                self.init(.webDAV)
                values[.address] = Self.decoded(server[...])
                break
            }
            self.init(.nextcloud)
            let (user, folder) = Self.split(server[files.upperBound...])
            values[.server] = Self.decoded(server[..<files.lowerBound])
            (values[.user], values[.folder]) = (Self.decoded(user), Self.decoded(folder))
        }
    }

    /// Whether a field shows the location of an account that is signed in.
    package func isFixed(_ field: SignInField) -> Bool {
        renewed != nil && [.server, .folder, .address, .path, .members, .prefix].contains(field)
    }

    /// Returns the label of a field.
    package func title(of field: SignInField) -> String {
        renewed != nil && field == .user && kind != .nextcloud ? tr("User Name, If Another") : field.title
    }

    /// Whether a password was entered without a user name. That is right unless the account had a token.
    var lacksUser: Bool { renewed != nil && !text(.password).isEmpty && text(.user).isEmpty }

    private static func split(_ path: Substring) -> (Substring, Substring) {
        let first = path.prefix { $0 != "/" }
        return (first, path.dropFirst(first.count + 1))
    }

    private static func decoded(_ text: Substring) -> String { PercentCoding.decode(text) ?? String(text) }
}
