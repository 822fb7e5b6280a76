// SPDX-License-Identifier: Apache-2.0

/// What the completion scripts offer after `history`: keys, and the options of "show", because that can be left out.
/// ArgumentParser's offer only the subcommands there.
enum HistoryCompletion {
    /// What the functions of bash and zsh contain, and what takes its place.
    private static let parts: [(String, String)] = [
        ("non_repeating_options=()", "non_repeating_options=(--store -s --bus --user)"),
        (
            #"COMPREPLY+=($(compgen -W 'show trim' -- "${cur}"))"#,
            #"""
            [[ " --store -s --bus --user " == *" ${prev} "* ]] || COMPREPLY+=($(compgen -W 'show trim' -- "${cur}"))
                    unparsed_words=("${subcommand}" "${unparsed_words[@]}")
                    _ubiquitousctl_history_show
            """#
        ),
        (
            "    local -i ret=1\n",
            #"""
                if [[ "${CURRENT}" -gt 2 && "${words[2]}" == -* ]]; then
                    _ubiquitousctl_history_show
                    return
                fi
                local -i ret=1

            """#
        ),
        (
            "_describe -V subcommand subcommands && ret=0",
            """
            _describe -V subcommand subcommands && ret=0
                    _ubiquitousctl_history_show && ret=0
            """
        ),
    ]

    /// Adds the keys and options to a script for any of the shells. Any other text stays as it is.
    static func added(to script: String) -> String {
        guard let start = script.firstRange(of: "\n_ubiquitousctl_history() {\n"),
            let end = script[start.upperBound...].firstRange(of: "\n}\n")
        else { return addedForFish(to: script) }
        var function = String(script[start.upperBound..<end.lowerBound])
        for (part, next) in parts { function = function.replacing(part, with: next) }
        return script[..<start.upperBound] + function + script[end.lowerBound...]
    }

    /// In fish, each line offers something. Those for what only "show" takes are there for `history` too.
    private static func addedForFish(to script: String) -> String {
        let (show, history) = (#""ubiquitousctl history show" "#, #""ubiquitousctl history" "#)
        let lines = script.split(separator: "\n", omittingEmptySubsequences: false).flatMap { line -> [String] in
            let isOfShowAlone = line.contains(show) && !["version'", "h help'"].contains { line.contains(show + $0) }
            return isOfShowAlone ? [String(line), String(line.replacing(show, with: history))] : [String(line)]
        }
        return lines.joined(separator: "\n").replacing(
            "case 'history'\n            __ubiquitousctl_parse_subcommand 0 ",
            with: "case 'history'\n            __ubiquitousctl_parse_subcommand 0 's/store=' 'bus=' 'user=' 'json' ")
    }
}
