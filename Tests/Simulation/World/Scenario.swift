// SPDX-License-Identifier: Apache-2.0

// Stories of what happens, as text: commands, a line of dashes, and what is seen. Anything that subscribers are told
// is seen by itself; what is stored is seen when it is asked for. Devices are the whole engine; requests take a few
// milliseconds, and nothing goes wrong but what the story says.

/// A story, as a file has it.
public struct Scenario {
    /// Blocks of commands with what is expected of them, and comments.
    private enum Part {
        case text(String)
        case block(line: Int, commands: [String], expected: [String])
    }

    /// Something in a story that makes no sense.
    public struct Flaw: Error, Equatable {
        /// The line that it is in, from 1.
        public let line: Int
        /// What is wrong with it.
        public let sentence: String
    }

    private var parts: [Part] = []

    /// Reads a story.
    /// - Throws: if commands are not followed by dashes.
    public init(_ text: String) throws(Flaw) {
        let all = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        var lines = all[...]
        while let line = lines.first {
            if line.isEmpty || line.hasPrefix("#") {
                parts.append(.text(lines.removeFirst()))
                continue
            }
            let start = lines.startIndex
            let commands = Array(lines.prefix { !$0.isEmpty && $0 != Self.dashes })
            lines = lines.dropFirst(commands.count)
            guard lines.popFirst() == Self.dashes else {
                throw Flaw(line: start + 1, sentence: "these commands are not followed by \(Self.dashes)")
            }
            let expected = Array(lines.prefix { !$0.isEmpty })
            if let second = expected.firstIndex(of: Self.dashes) {
                throw Flaw(line: lines.startIndex + second + 1, sentence: "these are second dashes in one block")
            }
            lines = lines.dropFirst(expected.count)
            parts.append(.block(line: start + 1, commands: commands, expected: expected))
        }
    }

    private static let dashes = "----"

    /// Plays the story.
    /// - Returns: the text as it should read, and the first block that reads otherwise.
    /// - Throws: if a command is none.
    public func play() throws(Flaw) -> (text: String, difference: String?) {
        let stage = Stage()
        defer { stage.end() }
        var (lines, difference) = ([String](), String?.none)
        for part in parts {
            switch part {
            case .text(let line): lines.append(line)
            case .block(let line, let commands, let expected):
                let seen = try stage.perform(commands, from: line)
                if seen != expected, difference == nil {
                    difference = "after \(commands)\nexpected \(expected)\n     but \(seen)"
                }
                lines += commands + [Self.dashes] + seen
            }
        }
        return (lines.joined(separator: "\n"), difference)
    }
}
