// SPDX-License-Identifier: Apache-2.0

package import PropertyList

extension Value {
    /// Makes an array of strings.
    static func strings(_ strings: [String]) -> Value { .array(strings.map { .string(Text($0)) }) }
}

extension Value: ExpressibleByDictionaryLiteral {
    /// Makes a dictionary from a literal, for results in JSON.
    package init(dictionaryLiteral elements: (Text, Value)...) {
        self = .dictionary(Dictionary(elements) { $1 })
    }
}
