// SPDX-License-Identifier: Apache-2.0

internal import GLibLoop
internal import RemoteAddress

/// A kind of remote to sign in to.
package enum RemoteKind: CaseIterable, Sendable {
    case nextcloud, webDAV, folder, etcd

    /// The name in the list of kinds.
    package var title: String {
        switch self {
        case .nextcloud: tr("Nextcloud")
        case .webDAV: tr("WebDAV Server")
        case .folder: tr("Folder")
        case .etcd: tr("etcd Cluster")
        }
    }

    /// What the kind is for.
    package var explanation: String {
        switch self {
        case .nextcloud: tr("Settings are kept in a folder of your Nextcloud.")
        case .webDAV: tr("Settings are kept in a folder of a server.")
        case .folder: tr("For a folder that Syncthing or a network share has on all of your devices.")
        case .etcd: tr("For an organization's cluster. Your administrator knows what to enter.")
        }
    }

    /// The fields to fill in, in this order.
    package var fields: [SignInField] {
        switch self {
        case .nextcloud: [.server, .user, .appPassword, .folder, .certificate]
        case .webDAV, .folder: [placeField] + credentials
        case .etcd: [placeField, .prefix] + credentials
        }
    }

    /// The fields for credentials. Of Nextcloud's credentials, the user only needs an app password.
    private var credentials: [SignInField] {
        backend.credentials.map { credential in
            switch credential {
            case .user: .user
            case .password: .password
            case .token: .token
            case .authority: .certificate
            }
        }
    }

    /// The field for the account's location.
    var placeField: SignInField {
        switch self {
        case .nextcloud: .server
        case .webDAV: .address
        case .folder: .path
        case .etcd: .members
        }
    }

    /// Returns the kinds for which a service has a backend.
    ///
    /// - Parameter features: the service's property `Features`.
    package static func offered(by features: [String]) -> [RemoteKind] {
        allCases.filter { kind in kind.backend.schemes.contains { features.contains($0) } }
    }

    /// The service's name for the kind.
    var backend: BackendKind {
        switch self {
        case .nextcloud, .webDAV: .webDAV
        case .folder: .folder
        case .etcd: .etcd
        }
    }
}

/// A field of the sign-in form.
package enum SignInField: Hashable, Sendable {
    case server, user, appPassword, folder, address, password, token, certificate, path, members, prefix

    /// The field's label.
    package var title: String {
        switch self {
        case .server: tr("Server, such as cloud.example.org")
        case .user: tr("User Name")
        case .appPassword: tr("App Password")
        case .folder: tr("Folder")
        case .address: tr("Address, such as https://dav.example.org/settings")
        case .password: tr("Password")
        case .token: tr("Token, Instead of User and Password")
        case .certificate: tr("Certificate File, If the Server Has Its Own")
        case .path: tr("Path of the Folder")
        case .members: tr("Servers, Separated by Commas")
        case .prefix: tr("Prefix, such as settings/ada")
        }
    }

    /// Whether the text is hidden while it is typed.
    package var isSecret: Bool { [.appPassword, .password, .token].contains(self) }

    /// What a file chooser offers for the field; `nil` if it names neither a file nor a folder.
    package var choice: Choice? {
        switch self {
        case .certificate: .file
        case .path: .folder
        default: nil
        }
    }

    /// What a file chooser offers.
    package enum Choice: Sendable { case file, folder }

    /// The text before the user types.
    package var preset: String { self == .folder ? "Settings" : "" }
}

/// An error in a form, and the field that it belongs to.
package struct FieldError: Error, Equatable, Sendable {
    /// The field; `nil` if the error belongs to no single one.
    package let field: SignInField?
    /// What is wrong and what to do.
    package let sentence: String
    /// The service's message, in English; empty if the service wasn't asked.
    package var details = ""
}
