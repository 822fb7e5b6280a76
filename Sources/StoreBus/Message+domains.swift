// SPDX-License-Identifier: Apache-2.0

public import PropertyList
public import SDBus

extension Message {
    /// Reads what `OpenDomains` answers: values of a domain, and names of objects as strings.
    public func readOpenedDomains() throws -> [[String: Value]] {
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

    /// Reads a value that may be two dictionaries around values of a store.
    public func readDeepValue() throws(BusError) -> Value { try readValue(maximumDepth: Limits.standard.depth + 2) }

    private func readPathVariant() throws(BusError) -> String {
        try enterContainer("v", "o")
        let path = try readString()
        try exitContainer()
        return path
    }
}
