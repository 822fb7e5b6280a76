// SPDX-License-Identifier: Apache-2.0

internal import PropertyList

/// What an interface says in an `a{sv}`. A name that is absent, or of another type than is asked for, is the empty
/// value of that type: a service of another version may leave it out.
extension [String: Value] {
    func string(_ name: String) -> String {
        if case .string(let text) = self[name] { text.string } else { "" }
    }

    func boolean(_ name: String) -> Bool {
        self[name] == .boolean(true)
    }

    func integer(_ name: String) -> Int64 {
        if case .integer(let number) = self[name] { number } else { 0 }
    }

    func strings(_ name: String) -> [String] {
        guard case .array(let values) = self[name] else { return [] }
        return values.compactMap { if case .string(let text) = $0 { text.string } else { nil } }
    }
}

extension Limits {
    /// Reads what is on the bus under the name `Limits`; the standard ones where it says nothing.
    init(_ value: Value?) {
        self = .standard
        guard case .dictionary(let numbers) = value else { return }
        for (name, path) in [
            ("keys", \Limits.keys), ("total-bytes", \.totalBytes), ("value-bytes", \.valueBytes),
            ("key-length", \.keyLength), ("depth", \.depth),
        ] {
            if case .integer(let number) = numbers[Text(name)] { self[keyPath: path] = Int(number) }
        }
    }
}
