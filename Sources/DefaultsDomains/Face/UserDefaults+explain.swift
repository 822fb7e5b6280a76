// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import ManagedDefaults
internal import PropertyList
internal import UbiquitousStore

extension UserDefaults {
    /// One layer's value of a key, as text for users.
    public struct Explanation: Sendable, CustomStringConvertible {
        /// The layer in words, such as `forced in org.example.Notes`.
        public let layer: String
        /// The value as text.
        public let value: String
        /// The administrator's file, if the layer comes from files.
        public let file: String?

        /// The layer, the value and the file.
        public var description: String { "\(layer): \(value)" + (file.map { " (\($0))" } ?? "") }
    }

    /// Returns each layer's value of a key, in the order of the search. The first one is the effective value.
    public func explain(_ key: String) -> [Explanation] {
        box.read { $0.all(Text(key)) }.map { found in
            Explanation(
                layer: found.layer.words, value: found.value.defaultsString ?? "\(found.value.object)",
                file: found.layer.source(of: Text(key)) { box.process.managed($0) })
        }
    }

    /// Returns each layer's value of a key, in the order of the search. The first one is the effective value.
    public func explain<Value>(_ key: Key<Value>) -> [Explanation] { explain(key.name) }
}
