// SPDX-License-Identifier: Apache-2.0

// Stories of what happens, as text: commands, a line of dashes, and what is seen. Anything that subscribers are told
// is seen by itself; what is stored is seen when it is asked for. Devices are the whole engine; requests take a few
// milliseconds, and nothing goes wrong but what the story says.

/// A story, as a file has it.
public struct Scenario {
    /// Blocks of commands with what is expected of them, and comments.
    private enum Part {
        case text(String)
        case block(commands: [String], expected: [String])
    }

    private var parts: [Part] = []

    /// Reads a story.
    public init(_ text: String) {
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)[...]
        while let line = lines.popFirst() {
            if line.isEmpty || line.hasPrefix("#") {
                parts.append(.text(line))
                continue
            }
            var (commands, expected) = ([line], [String]())
            while let next = lines.popFirst(), next != "----" { commands.append(next) }
            while let next = lines.first, !next.isEmpty { expected.append(lines.removeFirst().isEmpty ? "" : next) }
            parts.append(.block(commands: commands, expected: expected))
        }
    }

    /// Plays the story.
    /// - Returns: the text as it should read, and the first block that reads otherwise.
    public func play() -> (text: String, difference: String?) {
        let stage = Stage()
        defer { stage.end() }
        var (lines, difference) = ([String](), String?.none)
        for part in parts {
            switch part {
            case .text(let line): lines.append(line)
            case .block(let commands, let expected):
                let seen = stage.perform(commands)
                if seen != expected, difference == nil {
                    difference = "after \(commands)\nexpected \(expected)\n     but \(seen)"
                }
                lines += commands + ["----"] + seen
            }
        }
        return (lines.joined(separator: "\n"), difference)
    }
}
