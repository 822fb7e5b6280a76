// SPDX-License-Identifier: Apache-2.0

internal import AppManifest

extension Manifest {
    /// Whether one identifier may have been written for the other: apart from case, they differ in at most two letters
    /// in a row, or in a prefix that ends with a dot, such as a team's. Anybody may ask, so it looks at identifiers alone,
    /// and takes linear time.
    static func isNear(_ one: String, _ other: String) -> Bool {
        guard isName(one), isName(other) else { return false }
        let (one, other) = (one.lowercased(), other.lowercased())
        if one.hasSuffix("." + other) || other.hasSuffix("." + one) { return true }
        let shorter = min(one.utf8.count, other.utf8.count)
        let beginning = one.utf8.commonPrefixCount(with: other.utf8)
        let end = min(one.utf8.reversed().commonPrefixCount(with: other.utf8.reversed()), shorter - beginning)
        let others = max(one.utf8.count, other.utf8.count) - beginning - end
        return others <= 2 && others * 4 <= shorter
    }
}

extension Sequence where Element: Equatable {
    fileprivate func commonPrefixCount(with other: some Sequence<Element>) -> Int {
        zip(self, other).prefix { $0 == $1 }.count
    }
}
