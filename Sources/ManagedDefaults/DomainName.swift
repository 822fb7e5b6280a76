// SPDX-License-Identifier: Apache-2.0

internal import PropertyList

/// The rules for names of defaults domains.
package enum DomainName {
    /// Returns why a string can't name a domain; `nil` if it can.
    package static func problem(_ name: String) -> String? {
        if name.isEmpty { return "the name is empty; give it 1 to 255 bytes of UTF-8" }
        if name.utf8.count > 255 { return "the name has \(name.utf8.count) bytes; shorten it to 255" }
        if name == "." || name == ".." {
            return "a domain's name is 1 to 255 bytes of UTF-8 without slashes and control characters, and neither "
                + "\".\" nor \"..\""
        }
        if name.utf8.contains(UInt8(ascii: "/")) { return "the name has a slash; leave it out" }
        if name.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) {
            return "the name has a control character; leave it out"
        }
        if Text(name).containsNoncharacter { return "the name has a noncharacter; leave it out" }
        return nil
    }
}
