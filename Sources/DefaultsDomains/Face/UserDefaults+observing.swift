// SPDX-License-Identifier: Apache-2.0

// Being told of changes, whoever made them. Key-value observing does not exist on Linux: Apple's call of it is here, with
// the types that it takes.

public import Foundation
internal import PropertyList
internal import Synchronization
internal import UbiquitousStore

extension UserDefaults {
    /// Keys whose effective value changed, or a write that was refused.
    public struct Change: Sendable {
        /// Why.
        public let reason: Reason
        /// The keys, sorted by their UTF-8.
        public let keys: [String]
        /// Why a write of this process was refused, and taken back; with ``Reason/refused``.
        public let error: (any Error)?
        private let values: [String: SearchList.Change]

        init(_ change: DefaultsChange) {
            reason = Reason(rawValue: change.reason)
            keys = change.changes.map(\.key).sorted().map(\.string)
            error = change.error
            values = [String: SearchList.Change](change.changes.map { ($0.key.string, $0) }) { $1 }
        }

        /// The effective value before; `nil`: there was none, or the key isn't one of ``keys``.
        public func oldObject(forKey key: String) -> Any? { values[key]?.old?.object }

        /// The effective value after; `nil`: there is none, or the key isn't one of ``keys``.
        public func newObject(forKey key: String) -> Any? { values[key]?.new?.object }

        /// The effective value before; the key's default where there was none.
        public func oldValue<Value>(for key: Key<Value>) -> Value {
            values[key.name]?.old.flatMap { key.decode($0) } ?? key.defaultValue
        }

        /// The effective value after; the key's default where there is none.
        public func newValue<Value>(for key: Key<Value>) -> Value {
            values[key.name]?.new.flatMap { key.decode($0) } ?? key.defaultValue
        }

        /// Why settings changed. There may be more of them in later versions.
        public struct Reason: RawRepresentable, Sendable, Hashable {
            /// A number; those below 65536 are the interface's.
            public let rawValue: UInt32

            /// A reason by its number.
            public init(rawValue: UInt32) { self.rawValue = rawValue }

            /// This process wrote.
            public static let ownProcess = Reason(rawValue: DefaultsChange.own)
            /// Another process of this device wrote.
            public static let otherProcess = Reason(rawValue: DefaultsChange.otherProcess)
            /// Another device wrote a key that roams.
            public static let otherDevice = Reason(rawValue: 0)
            /// The account's values of keys that roam have arrived for the first time.
            public static let initialSync = Reason(rawValue: DefaultsChange.initialSync)
            /// The person has signed in, out, or to another account.
            public static let account = Reason(rawValue: DefaultsChange.account)
            /// An administrator says something else.
            public static let managed = Reason(rawValue: DefaultsChange.managed)
            /// A write of this process was refused, and taken back.
            public static let refused = Reason(rawValue: DefaultsChange.refused)
        }
    }

    /// Changes from now on. Of a loop that is slow the oldest are left out: 64 wait at most.
    public var changes: AsyncStream<Change> {
        AsyncStream(bufferingPolicy: .bufferingNewest(64)) { continuation in
            let box = box
            let observer = box.observe { continuation.yield(Change($0)) }
            continuation.onTermination = { _ in box.stopObserving(observer) }
        }
    }

    /// The effective values of a key: the present one first. A loop that is slow gets the newest.
    public func values<Value>(of key: Key<Value>) -> AsyncStream<Value> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let box = box
            let name = Text(key.name)
            let observer = box.observe { change in
                guard change.error == nil, change.changes.contains(where: { $0.key == name }) else { return }
                continuation.yield(box.value(key.name).flatMap { key.decode($0) } ?? key.defaultValue)
            }
            continuation.yield(box.value(key.name).flatMap { key.decode($0) } ?? key.defaultValue)
            continuation.onTermination = { _ in box.stopObserving(observer) }
        }
    }

    /// Calls `handler` on a serial queue when the effective value of a key changed, whoever did it, until the token goes.
    public func observe(
        _ key: String, options: NSKeyValueObservingOptions = [],
        changeHandler handler: @escaping @Sendable (UserDefaults, NSKeyValueObservedChange<Any>) -> Void
    ) -> NSKeyValueObservation {
        let name = Text(key)
        let token = NSKeyValueObservation(box)
        token.begin { [weak self] change in
            guard change.error == nil, let self, let found = change.changes.first(where: { $0.key == name }) else {
                return
            }
            handler(self, NSKeyValueObservedChange(options, old: found.old?.object, new: found.new?.object))
        }
        if options.contains(.initial) {
            handler(self, NSKeyValueObservedChange(options, old: nil, new: object(forKey: key)))
        }
        return token
    }

    /// Apple's call: calls `handler` on a serial queue when what a key path leads to may be another value, until the
    /// token goes. The path is evaluated at each change of a setting, and compared where its type can be.
    public func observe<Value>(
        _ keyPath: any KeyPath<UserDefaults, Value> & Sendable, options: NSKeyValueObservingOptions = [],
        changeHandler handler: @escaping @Sendable (UserDefaults, NSKeyValueObservedChange<Value>) -> Void
    ) -> NSKeyValueObservation {
        let token = NSKeyValueObservation(box)
        let known = Known(self[keyPath: keyPath])
        token.begin { [weak self] change in
            guard change.error == nil, let self else { return }
            let new = self[keyPath: keyPath]
            guard let old = known.replace(by: new) else { return }
            handler(self, NSKeyValueObservedChange(options, old: old, new: new))
        }
        if options.contains(.initial) {
            handler(self, NSKeyValueObservedChange(options, old: nil, new: self[keyPath: keyPath]))
        }
        return token
    }
}

/// The value that an observer was told last.
private final class Known<Value>: @unchecked Sendable {
    // @unchecked because a value is of any type; it is touched under the lock alone.
    private let lock = NSLock()
    private var value: Value

    init(_ value: Value) { self.value = value }

    /// - Returns: the value before; `nil` if it is the same.
    func replace(by new: Value) -> Value? {
        lock.withLock {
            if Self.areEqual(value, new) { return nil }
            defer { value = new }
            return value
        }
    }

    /// Dictionaries and arrays of any contents are compared as the property lists that they are.
    private static func areEqual(_ old: Value, _ new: Value) -> Bool {
        let areNone = [old, new].map { ($0 as? any OptionalValue)?.isNone == true }
        if areNone[0] || areNone[1] { return areNone[0] == areNone[1] }
        if let old = old as? any Equatable { return isEqual(old, new) }
        guard let old = try? PropertyList.Value(object: old) else { return false }
        return (try? PropertyList.Value(object: new)) == old
    }

    private static func isEqual<T: Equatable>(_ old: T, _ new: Any) -> Bool { (new as? T) == old }
}

/// A token: what it was made for ends when it goes, or before with ``invalidate()``.
public final class NSKeyValueObservation: NSObject, @unchecked Sendable {
    // @unchecked because NSObject isn't Sendable; what is here is.
    private let box: SearchBox
    private let observer = Mutex<UUID?>(nil)

    init(_ box: SearchBox) {
        self.box = box
        super.init()
    }

    deinit { invalidate() }

    func begin(_ action: @escaping @Sendable (DefaultsChange) -> Void) {
        let observer = box.observe(action)
        self.observer.withLock { $0 = observer }
    }

    /// Ends it.
    public func invalidate() {
        if let observer = observer.withLock({ $0.take() }) { box.stopObserving(observer) }
    }
}

/// What an observer wants to know.
public struct NSKeyValueObservingOptions: OptionSet, Sendable {
    /// Apple's bits.
    public let rawValue: UInt

    /// Options by their bits.
    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// The value after the change.
    public static let new = NSKeyValueObservingOptions(rawValue: 1)
    /// The value before the change.
    public static let old = NSKeyValueObservingOptions(rawValue: 2)
    /// The handler is called at once as well.
    public static let initial = NSKeyValueObservingOptions(rawValue: 4)
    /// Apple's call before a change. Nothing is known before a change here: it does nothing.
    public static let prior = NSKeyValueObservingOptions(rawValue: 8)
}

/// What an observer is told.
public struct NSKeyValueObservedChange<Value> {
    /// The value after, with the option ``NSKeyValueObservingOptions/new``; `nil`: there is none.
    public let newValue: Value?
    /// The value before, with the option ``NSKeyValueObservingOptions/old``; `nil`: there was none.
    public let oldValue: Value?
    /// False: nothing is known before a change.
    public var isPrior: Bool { false }

    init(_ options: NSKeyValueObservingOptions, old: Value?, new: Value?) {
        newValue = options.contains(.new) ? new : nil
        oldValue = options.contains(.old) ? old : nil
    }
}
