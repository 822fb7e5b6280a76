// SPDX-License-Identifier: Apache-2.0

package import PropertyList
package import SDBus

extension Message {
    /// Reads the answer of `OpenDomains`, with object paths as strings.
    /// - Throws: what ``readDeepValue()`` throws; `BusError` (InvalidArgs) if something else is next.
    package func readOpenedDomains() throws -> [[String: Value]] {
        var domains: [[String: Value]] = []
        try enterContainer("a", "a{sv}")
        while try !isAtEnd(whole: false) {
            var domain: [String: Value] = [:]
            try readDictionary { name in
                domain[name] = name == "path" ? .string(Text(try readPathVariant())) : try readDeepValue()
            }
            domains.append(domain)
        }
        try exitContainer()
        return domains
    }

    /// Reads a value with up to two dictionaries around a store's values.
    /// - Throws: `InvalidValue` or `DepthExceeded`, as ``readValue(maximumDepth:)`` does.
    package func readDeepValue() throws(BusError) -> Value { try readValue(maximumDepth: Limits.standard.depth + 2) }

    private func readPathVariant() throws(BusError) -> String {
        try enterContainer("v", "o")
        let path = try readString()
        try exitContainer()
        return path
    }
}
