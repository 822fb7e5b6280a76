// SPDX-License-Identifier: Apache-2.0

internal import PropertyList

/// The contents of an `a{sv}`. If a name is absent or has another type than requested, the result is the empty value of
/// the requested type, because a service of another version may leave it out.
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
    /// Reads the property `Limits`; missing limits are the standard ones.
    init(_ value: Value?) {
        self = .standard
        guard case .dictionary(let numbers) = value else { return }
        for (name, path) in Self.names {
            if case .integer(let number) = numbers[Text(name)] { self[keyPath: path] = Int(number) }
        }
    }
}
