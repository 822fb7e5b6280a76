// SPDX-License-Identifier: Apache-2.0

/// A D-Bus interface, as a table: what there is, in which types, and what does it.
///
/// `Object` is what the methods and properties are of. ``BusConnection/register(_:at:_:)`` puts one object on the bus,
/// ``BusConnection/register(_:under:find:)`` many.
///
/// Every method may be called by everyone, as far as libsystemd is concerned: handlers decide.
public struct Interface<Object: AnyObject>: Sendable {
    /// Handles a call: by answering it, by keeping it to answer later, or by throwing.
    ///
    /// An error that isn't a ``BusError`` gets to the caller as Failed, with its description.
    public typealias Handler = @BusActor (Object, MethodCall) throws -> Void
    /// Appends a property's value to a message; must not wait for anything.
    public typealias Getter = @BusActor (Object, Message, Peer) throws -> Void

    /// The name, as `org.freedesktop.DBus.Properties`.
    public let name: String
    /// Everything in it, in the order of introspection.
    public let members: [Member]

    /// An interface.
    public init(_ name: String, _ members: [Member]) {
        self.name = name
        self.members = members
    }

    /// A method, signal or property.
    public struct Member: Sendable {
        /// The name.
        public let name: String
        let kind: Kind

        enum Kind: Sendable {
            case method(in: [Argument], out: [Argument], sensitive: Bool, Handler)
            case signal([Argument])
            case property(type: String, changes: PropertyChanges, Getter)
        }

        /// A method.
        ///
        /// - Parameters:
        ///   - arguments: name and signature of each argument; libsystemd refuses calls with others.
        ///   - results: name and signature of each value in the reply.
        ///   - sensitive: whether memory of calls and replies is erased after use.
        ///
        /// The corresponding C macro is ``SD_BUS_METHOD_WITH_NAMES_OFFSET``.
        public static func method(
            _ name: String,
            in arguments: KeyValuePairs<String, String> = [:],
            out results: KeyValuePairs<String, String> = [:],
            sensitive: Bool = false,
            _ handler: @escaping Handler
        ) -> Member {
            let kind = Kind.method(
                in: arguments.map(Argument.init),
                out: results.map(Argument.init),
                sensitive: sensitive,
                handler
            )
            return Member(name: name, kind: kind)
        }

        /// A signal, for introspection; ``BusConnection/newSignal(_:_:_:to:)`` makes one to send.
        ///
        /// The corresponding C macro is ``SD_BUS_SIGNAL_WITH_NAMES``.
        public static func signal(_ name: String, _ arguments: KeyValuePairs<String, String> = [:]) -> Member {
            Member(name: name, kind: .signal(arguments.map(Argument.init)))
        }

        /// A property that everybody can read who finds the object, unless its getter throws.
        ///
        /// A service whose callers may read different things has a function of its own for its tables, which says who may.
        ///
        /// - Parameter type: the signature of its value.
        ///
        /// The corresponding C macro is ``SD_BUS_PROPERTY``.
        public static func unguardedProperty(
            _ name: String,
            _ type: String,
            changes: PropertyChanges,
            _ getter: @escaping Getter
        ) -> Member {
            Member(name: name, kind: .property(type: type, changes: changes, getter))
        }
    }
}

/// How a property changes. There is no way to say that it tells: PropertiesChanged is a broadcast, to every user.
public enum PropertyChanges: Sendable {
    /// It changes, and says nothing (EmitsChangedSignal is `false`).
    case silently
    /// It stays what it is (EmitsChangedSignal is `const`).
    case never
}

/// Name and signature of a method's or signal's argument.
struct Argument: Sendable {
    let name: String
    let signature: String

    init(_ pair: (key: String, value: String)) {
        name = pair.key
        signature = pair.value
    }
}
