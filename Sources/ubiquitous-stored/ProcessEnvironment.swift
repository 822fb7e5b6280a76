// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Reads options from the environment, for service managers that set no command line.
enum ProcessEnvironment {
    private enum Kind { case single, repeated, flag }

    private static let options: [(name: String, kind: Kind)] = [
        ("bus", .single), ("state-directory", .single), ("manifest-directory", .repeated),
        ("managed-directory", .repeated), ("mode", .single), ("folder-root", .repeated), ("device-name", .single),
        ("allow-undeclared", .flag), ("idle-exit", .single),
        ("log-level", .single), ("configuration", .single),
    ]

    /// Adds options from the environment that the command line doesn't have.
    static func complete(_ arguments: [String]) -> [String] {
        var completed = arguments
        for (name, kind) in options {
            let option = "--\(name)"
            if arguments.contains(where: { $0 == option || $0.hasPrefix(option + "=") }) { continue }
            guard let value = self[variable(name)], !value.isEmpty else { continue }
            switch kind {
            case .single: completed.append("\(option)=\(value)")
            case .repeated: completed += value.split(separator: ":").map { "\(option)=\($0)" }
            case .flag: if value == "1" { completed.append(option) }
            }
        }
        return completed
    }

    static subscript(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }
    }

    private static func variable(_ option: String) -> String {
        "UBIQUITOUS_STORED_" + option.uppercased().replacing("-", with: "_")
    }
}
