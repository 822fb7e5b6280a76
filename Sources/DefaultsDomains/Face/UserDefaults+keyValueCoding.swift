// SPDX-License-Identifier: Apache-2.0

extension UserDefaults {
    /// Does the same as ``object(forKey:)``, for Apple's key-value coding.
    public func value(forKey key: String) -> Any? { object(forKey: key) }

    /// Does the same as ``set(_:forKey:)-(Any?,_)``, for Apple's key-value coding; `nil` removes.
    public func setValue(_ value: Any?, forKey key: String) { set(value, forKey: key) }
}
