// SPDX-License-Identifier: Apache-2.0

/// The rule that a value breaks.
public enum ValueError: Error, Hashable {
    /// Containers are nested deeper than `limit`.
    case tooDeep(limit: Int)
    /// The value is larger than `limit` bytes. `size` is how far it was counted: exact for a string or data, possibly
    /// less than the whole for a container.
    case tooLarge(size: Int, limit: Int)
    /// A string or a dictionary's key contains U+0000.
    case containsNUL
    /// A string or a dictionary's key contains a noncharacter, such as U+FFFF.
    case containsNoncharacter
    /// A date is infinite or not a number.
    case dateNotFinite
}

extension ValueError: CustomStringConvertible {
    /// A sentence that says what is wrong and what to do. It contains nothing of the value.
    public var description: String {
        switch self {
        case .tooDeep(let limit):
            "Arrays and dictionaries are nested deeper than \(limit); flatten the value or spread it over several keys."
        case .tooLarge(let size, let limit):
            "The value has at least \(size) bytes and the limit is \(limit); keep large data in a file."
        case .containsNUL:
            "A string or a dictionary's key contains U+0000; leave that character out or store data instead."
        case .containsNoncharacter:
            "A string or a dictionary's key contains a noncharacter, such as U+FFFF; store such text as data."
        case .dateNotFinite:
            "A date is infinite or not a number; dates are finite seconds since 2001-01-01T00:00:00Z."
        }
    }
}

extension Value {
    /// Checks the rules of one value (nesting, size, neither U+0000 nor noncharacters in strings and dictionary keys,
    /// finite dates) and returns its ``size``.
    ///
    /// It stops at the first broken rule. It recurses at most `limits.depth + 1` times and visits at most
    /// `limits.valueBytes` scalars, so it is safe for values from anywhere. (Freeing a value that is nested thousands
    /// deep recurses too, in Swift's runtime; do not build one.)
    @discardableResult
    public func validate(_ limits: Limits = .standard) throws(ValueError) -> Int {
        var validation = Validation(limits: limits)
        try validation.visit(self, nesting: 0)
        return validation.size
    }
}

private struct Validation {
    let limits: Limits
    var size = 0

    mutating func visit(_ value: Value, nesting: Int) throws(ValueError) {
        try count(value.ownSize)
        switch value {
        case .boolean, .integer, .real, .data: break
        case .date(let seconds): if !seconds.isFinite { throw .dateNotFinite }
        case .string(let text): try check(text)
        case .array(let values):
            let nesting = try enter(nesting)
            for value in values { try visit(value, nesting: nesting) }
        case .dictionary(let values):
            let nesting = try enter(nesting)
            for (key, value) in values {
                try count(key.utf8Count)
                try check(key)
                try visit(value, nesting: nesting)
            }
        }
    }

    private func check(_ text: Text) throws(ValueError) {
        if text.containsNUL { throw .containsNUL }
        if text.containsNoncharacter { throw .containsNoncharacter }
    }

    private func enter(_ nesting: Int) throws(ValueError) -> Int {
        guard nesting < limits.depth else { throw .tooDeep(limit: limits.depth) }
        return nesting + 1
    }

    private mutating func count(_ bytes: Int) throws(ValueError) {
        size = size.addingClamped(bytes)
        if size > limits.valueBytes { throw .tooLarge(size: size, limit: limits.valueBytes) }
    }
}
