// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser

/// What the completion script for bash offers after `help`. ArgumentParser's offers nothing there.
enum HelpCompletion {
    /// Adds the subcommands to the script's function for `help`. Any other text stays as it is.
    static func added(to script: String) -> String {
        guard let start = script.firstRange(of: "\n_ubiquitousctl_help() {\n    repeating_flags=()\n"),
            let end = script[start.upperBound...].firstRange(of: "\n}\n")
        else { return script }
        let names = Program.configuration.subcommands.compactMap { $0.configuration.commandName }
        let offer = """

                if [[ "${COMP_CWORD}" -eq 2 ]]; then
                    COMPREPLY+=($(compgen -W '\(names.joined(separator: " "))' -- "${cur}"))
                fi
            """
        return script[..<end.lowerBound] + offer + script[end.lowerBound...]
    }
}
