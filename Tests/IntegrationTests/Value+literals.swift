// SPDX-License-Identifier: Apache-2.0

public import PropertyList

/// Strings in tests are short to write.
extension Value: ExpressibleByStringLiteral {
    /// The string.
    public init(stringLiteral value: String) { self = .string(Text(value)) }
}
