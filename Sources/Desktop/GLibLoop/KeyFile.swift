// SPDX-License-Identifier: Apache-2.0

internal import CGio
internal import Glibc

/// A small file of groups, keys and values: `GKeyFile`.
@MainActor
package final class KeyFile {
    private let file = g_key_file_new()
    private let path: String

    /// Reads a file of the user's configuration directory. A missing or broken file counts as empty.
    ///
    /// - Parameter name: a path below `$XDG_CONFIG_HOME`.
    package init(configuration name: String) {
        path = String(cString: g_get_user_config_dir()) + "/" + name
        g_key_file_load_from_file(file, path, G_KEY_FILE_NONE, nil)
    }

    isolated deinit {
        g_key_file_unref(file)
    }

    /// Returns an integer; `nil` if there is none.
    package func integer(_ key: String, in group: String) -> Int? {
        var error: UnsafeMutablePointer<GError>?
        let value = g_key_file_get_int64(file, group, key, &error)
        guard error == nil else {
            g_clear_error(&error)
            return nil
        }
        return Int(value)
    }

    /// Sets an integer, and replaces the file atomically.
    ///
    /// - Throws: ``Failure``, with the system's message.
    package func set(_ value: Int, for key: String, in group: String) throws(Failure) {
        g_key_file_set_int64(file, group, key, gint64(value))
        let directory = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
        guard g_mkdir_with_parents(directory, 0o700) == 0 else {
            throw Failure(description: "\(directory) can't be made: \(String(cString: strerror(errno))).")
        }
        var error: UnsafeMutablePointer<GError>?
        guard g_key_file_save_to_file(file, path, &error) == 0, let failure = error else { return }
        defer { g_clear_error(&error) }
        throw Failure(description: String(cString: failure.pointee.message))
    }

    /// Why a file could not be written.
    package struct Failure: Error, CustomStringConvertible {
        /// The system's message.
        package let description: String
    }
}
