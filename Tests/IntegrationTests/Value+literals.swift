// SPDX-License-Identifier: Apache-2.0

public import PropertyList

/// Makes values from string literals.
extension Value: ExpressibleByStringLiteral {
    /// Makes a string value.
    public init(stringLiteral value: String) { self = .string(Text(value)) }
}
