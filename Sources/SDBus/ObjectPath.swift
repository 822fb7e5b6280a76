// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc

/// Object paths with a label that may be any string, such as an app's identifier.
package enum ObjectPath {
    /// Appends `label` to `prefix` as one element, with `_` and two hexadecimal digits for what a path can't hold.
    ///
    /// - Throws: ``BusError`` (InvalidArgs) if `prefix` is no object path or `label` contains U+0000.
    ///
    /// The corresponding C function is ``sd_bus_path_encode``.
    package static func encode(prefix: String, label: String) throws(BusError) -> String {
        guard !label.utf8.contains(0) else { throw .invalidArguments("A label can't have a U+0000.") }
        var path: UnsafeMutablePointer<CChar>?
        try check(sd_bus_path_encode(prefix, label, &path), "encoding an object path")
        defer { free(path) }
        return path.map { String(cString: $0) } ?? ""
    }

    /// Returns the label from which ``encode(prefix:label:)`` makes `path`; `nil` if there is none.
    ///
    /// So there is exactly one path for each label: `_61` is not `a`.
    ///
    /// The corresponding C function is ``sd_bus_path_decode``.
    package static func decode(_ path: String, prefix: String) -> String? {
        var label: UnsafeMutablePointer<CChar>?
        guard sd_bus_path_decode(path, prefix, &label) > 0, let label else { return nil }
        defer { free(label) }
        guard let label = String(validatingCString: label) else { return nil }
        return try? encode(prefix: prefix, label: label) == path ? label : nil
    }

    /// Returns whether `path` is an object path by the D-Bus Specification.
    ///
    /// The corresponding C function is ``sd_bus_object_path_is_valid``.
    package static func isValid(_ path: String) -> Bool {
        sd_bus_object_path_is_valid(path) > 0 && !path.utf8.contains(0)
    }
}
