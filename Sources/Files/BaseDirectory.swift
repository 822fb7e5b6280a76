// SPDX-License-Identifier: Apache-2.0

/// A user's base directory, by the XDG Base Directory Specification
/// (https://specifications.freedesktop.org/basedir-spec/latest/).
package enum BaseDirectory: Sendable {
    case config, data, state

    /// The environment variable that names the directory.
    package var variable: String {
        switch self {
        case .config: "XDG_CONFIG_HOME"
        case .data: "XDG_DATA_HOME"
        case .state: "XDG_STATE_HOME"
        }
    }

    private var standard: String {
        switch self {
        case .config: ".config"
        case .data: ".local/share"
        case .state: ".local/state"
        }
    }

    /// Returns the directory: the one that its variable names, or else the standard one below `HOME`. As the
    /// specification says, a relative path doesn't count.
    /// - Parameter environment: returns the value of a variable.
    /// - Returns: `nil` if neither variable names an absolute path.
    package func path(in environment: (String) -> String?) -> String? {
        func absolute(_ name: String) -> String? { environment(name).flatMap { $0.hasPrefix("/") ? $0 : nil } }
        return absolute(variable) ?? absolute("HOME").map { "\($0)/\(standard)" }
    }
}
