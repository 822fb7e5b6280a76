// SPDX-License-Identifier: Apache-2.0

/// Finds the string literals in Swift sources that users read.
struct SentenceScanner {
    /// A literal, with numbers in place of interpolations: `There is no user {1}.`
    struct Literal {
        let format: String
        /// Whether the literal is a whole argument.
        let isArgument: Bool
        fileprivate let end: Int
    }

    private let source: [Character]
    private let text: String

    init(_ text: String) { (self.text, source) = (text, Array(text)) }

    /// Returns the texts of the command line that are translated.
    func translatable() -> [String] {
        // With simple boundaries, a full stop is no part of a word.
        let starts = /\b(?:Failure|remark|localized|showing|failure|Question|self\.init)\(|\.make\(|: Sentence\] = \[/
            .wordBoundaryKind(.simple)
        return literals(after: starts).map(\.format)
            + text.matches(of: /: Sentence = (?=")/).map { literal(at: offset($0.range.upperBound)).format }
    }

    /// Returns all literals; concatenated ones count as one.
    func all() -> [String] {
        var (index, found, lastEnd) = (0, [String](), Int.max)
        while index < source.count {
            if starts(with: "//", index) { index = source[index...].firstIndex(of: "\n") ?? source.count }
            guard index < source.count, source[index] == "\"" else {
                index += 1
                continue
            }
            let (format, end) = literal(at: index)
            if let last = found.last, lastEnd < index, isPlus(lastEnd..<index) {
                found[found.count - 1] = Self.joined(last, format)
            } else {
                found.append(format)
            }
            (index, lastEnd) = (end, end)
        }
        return found
    }

    /// Returns two literals as one, with the numbers of the second after those of the first.
    private static func joined(_ first: String, _ second: String) -> String {
        let count = first.matches(of: /\{\d\}/).count
        return first + second.replacing(/\{(\d)\}/) { "{\((Int($0.1) ?? 0) + count)}" }
    }

    /// Returns the literals that are sentences between a match of `opening` and the bracket that closes it.
    func literals(after opening: Regex<Substring>) -> [Literal] {
        text.matches(of: opening).flatMap { literals(from: offset($0.range.upperBound)) }
    }

    /// Returns the keys of the dictionary literal that begins with `opening`, in their order.
    func keys(after opening: Regex<Substring>) -> [String] {
        guard let match = text.firstMatch(of: opening) else { return [] }
        var (index, keys) = (offset(match.range.upperBound), [String]())
        while index < source.count {
            guard source[index] == "\"" else {
                index += 1
                continue
            }
            let (format, end) = literal(at: index)
            if end < source.count && source[end] == ":" { keys.append(format) }
            index = end
        }
        return keys
    }

    private func offset(_ index: String.Index) -> Int { text.distance(from: text.startIndex, to: index) }

    /// Returns the literals up to the bracket that closes the one before `start`. Concatenated literals count as one.
    private func literals(from start: Int) -> [Literal] {
        var (index, depth, found) = (start, 1, [Literal]())
        while depth > 0 && index < source.count {
            if source[index] == "\"" {
                let (format, end) = literal(at: index)
                if let last = found.last, isPlus(last.end..<index) {
                    found[found.count - 1] = Literal(
                        format: Self.joined(last.format, format), isArgument: last.isArgument, end: end)
                } else if isSentence(format, at: index, end) {
                    found.append(Literal(format: format, isArgument: depth == 1, end: end))
                }
                index = end
                continue
            }
            if starts(with: "//", index) { index = source[index...].firstIndex(of: "\n") ?? source.count - 1 }
            if "([{".contains(source[index]) { depth += 1 }
            if ")]}".contains(source[index]) { depth -= 1 }
            index += 1
        }
        return found
    }

    private func isPlus(_ range: Range<Int>) -> Bool { source[range].filter { !$0.isWhitespace } == ["+"] }

    private func isSentence(_ format: String, at start: Int, _ end: Int) -> Bool {
        let isVerbatim = source[..<start].suffix(60).filter { !$0.isWhitespace }.suffix(9) == Array("verbatim:")[...]
        let isKey = end < source.count && source[end] == ":"
        return !isVerbatim && !isKey && format.replacing(/\{\d\}/, with: "").contains(/[A-Za-z]{2}/)
    }

    private func starts(with word: String, _ index: Int) -> Bool { source[index...].starts(with: word) }

    /// Returns the literal at a quotation mark, with numbers in place of interpolations, and where it ends.
    private func literal(at start: Int) -> (format: String, end: Int) {
        let quote = starts(with: "\"\"\"", start) ? "\"\"\"" : "\""
        var (index, format, count) = (start + quote.count, "", 0)
        while index < source.count && !starts(with: quote, index) {
            if starts(with: "\\(", index) {
                count += 1
                format += "{\(count)}"
                index = endOfInterpolation(index + 2)
            } else if source[index] == "\\" {
                // Sentences contain only these two kinds of escapes.
                format += source[index + 1] == "\n" ? "\\\n" : String(source[index + 1])
                index += 2
            } else {
                format.append(source[index])
                index += 1
            }
        }
        return (quote.count == 1 ? format : Self.unindented(format), index + quote.count)
    }

    private func endOfInterpolation(_ start: Int) -> Int {
        var (index, depth) = (start, 1)
        while depth > 0 && index < source.count {
            if source[index] == "\"" {
                index = literal(at: index).end
                continue
            }
            if source[index] == "(" { depth += 1 }
            if source[index] == ")" { depth -= 1 }
            index += 1
        }
        return index
    }

    private static func unindented(_ text: String) -> String {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropFirst()
        let indentation = lines.last?.count ?? 0
        return lines.dropLast().map { $0.dropFirst(indentation) }.joined(separator: "\n").replacing("\\\n", with: "")
    }
}
