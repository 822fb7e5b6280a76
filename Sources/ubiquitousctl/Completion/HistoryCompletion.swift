// SPDX-License-Identifier: Apache-2.0

/// What the completion scripts offer after `history`: keys, too, because "show" can be left out. ArgumentParser's offer
/// only the subcommands there.
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
            "_describe -V subcommand subcommands && ret=0",
            """
            _describe -V subcommand subcommands && ret=0
                    _ubiquitousctl_history_show && ret=0
            """
        ),
    ]

    /// Adds the keys to a script for any of the shells. Any other text stays as it is.
    static func added(to script: String) -> String {
        guard let start = script.firstRange(of: "\n_ubiquitousctl_history() {\n"),
            let end = script[start.upperBound...].firstRange(of: "\n}\n")
        else { return addedForFish(to: script) }
        var function = String(script[start.upperBound..<end.lowerBound])
        for (part, next) in parts { function = function.replacing(part, with: next) }
        return script[..<start.upperBound] + function + script[end.lowerBound...]
    }

    /// In fish, each line offers something.
    private static func addedForFish(to script: String) -> String {
        let place = #""ubiquitousctl history show" -eq 1"#
        guard let line = script.split(separator: "\n").first(where: { $0.contains(place) }) else { return script }
        let next = line.replacing(place, with: #""ubiquitousctl history" -eq 1"#)
        return script.replacing(line, with: "\(line)\n\(next)")
    }
}
