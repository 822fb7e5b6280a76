// SPDX-License-Identifier: Apache-2.0

internal import GLibLoop

/// The folders below which accounts may be, as the service says.
package struct FolderRoots: Equatable, Sendable {
    private let paths: [String]?

    /// - Parameter paths: `nil` if the service doesn't say.
    package init(_ paths: [String]?) { self.paths = paths }

    /// Whether no folder may be used.
    package var areNone: Bool { paths == [] }

    /// The path to begin with; empty if any folder may be used.
    package var preset: String { isAnyAllowed ? "" : paths?.first ?? "" }

    private var isAnyAllowed: Bool { paths?.contains("/") ?? true }

    /// Which folders may be used, as a sentence; `nil` if any may.
    package var explanation: String? {
        if areNone { return tr("Folders can't be used on this device: its administrator has allowed none.") }
        if isAnyAllowed { return nil }
        let list = (paths ?? []).map(\.quoted).joined(separator: ", ")
        return tr("The administrator of this device has allowed: %1", list)
    }
}
