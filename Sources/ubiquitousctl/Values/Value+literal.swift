// SPDX-License-Identifier: Apache-2.0

public import PropertyList

extension Value {
    /// An array of strings.
    static func strings(_ strings: [String]) -> Value { .array(strings.map { .string(Text($0)) }) }
}

extension Value: ExpressibleByDictionaryLiteral {
    /// A dictionary, as results in JSON are written.
    public init(dictionaryLiteral elements: (Text, Value)...) {
        self = .dictionary(Dictionary(elements) { $1 })
    }
}
