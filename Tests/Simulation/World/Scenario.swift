// SPDX-License-Identifier: Apache-2.0

// Stories as text: commands, a line of dashes, and what is seen. What subscribers are told is seen by itself; what is
// stored is seen if a command asks for it. Devices are those of the whole form. Requests take a few milliseconds, and
// only the faults that the story names happen.

/// A story, as its file has it.
public struct Scenario {
    /// Blocks of commands with their expected output, and comments.
    private enum Part {
        case text(String)
        case block(line: Int, commands: [String], expected: [String])
    }

    /// An error in a story.
    public struct Flaw: Error, Equatable {
        /// The error's line, from 1.
        public let line: Int
        /// What is wrong, as a clause.
        public let sentence: String
    }

    private var parts: [Part] = []

    /// Reads a story.
    /// - Throws: if commands are not followed by one line of dashes.
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
    /// - Returns: the text as it should read, and the first block that differs; `nil` if none does.
    /// - Throws: if a command makes no sense.
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
