// SPDX-License-Identifier: Apache-2.0

extension UserDefaults {
    /// Apple's key-value coding: the same as ``object(forKey:)``.
    public func value(forKey key: String) -> Any? { object(forKey: key) }

    /// Apple's key-value coding: the same as ``set(_:forKey:)-(Any?,_)``; `nil` removes.
    public func setValue(_ value: Any?, forKey key: String) { set(value, forKey: key) }
}
