// SPDX-License-Identifier: Apache-2.0

/// A D-Bus interface as a table: its members, their types, and their handlers.
///
/// `Object` is the type that has the methods and properties. ``BusConnection/register(_:at:_:)`` puts one object on the
/// bus, ``BusConnection/register(_:under:find:)`` many.
///
/// As far as libsystemd is concerned, any caller may call any method. The handlers decide.
package struct Interface<Object: AnyObject>: Sendable {
    /// Handles a call: by answering it, by keeping it to answer later, or by throwing.
    ///
    /// An error that isn't a ``BusError`` reaches the caller as Failed, with its description.
    package typealias Handler = @BusActor (Object, MethodCall) throws -> Void
    /// Appends a property's value to a message. It must not wait for anything.
    package typealias Getter = @BusActor (Object, Message, Peer) throws -> Void

    /// The name, such as `org.freedesktop.DBus.Properties`.
    package let name: String
    /// The members, in the order of introspection.
    package let members: [Member]

    /// Makes an interface from its parts.
    package init(_ name: String, _ members: [Member]) {
        self.name = name
        self.members = members
    }

    /// A method, signal or property.
    package struct Member: Sendable {
        /// The name.
        package let name: String
        let kind: Kind

        enum Kind: Sendable {
            case method(in: [Argument], out: [Argument], sensitive: Bool, Handler)
            case signal([Argument])
            case property(type: String, changes: PropertyChanges, Getter)
        }

        /// Makes a method.
        ///
        /// - Parameters:
        ///   - arguments: the name and signature of each argument. libsystemd refuses calls with others.
        ///   - results: the name and signature of each value in the reply.
        ///   - sensitive: whether the memory of calls and replies is erased after use.
        ///
        /// The corresponding C macro is ``SD_BUS_METHOD_WITH_NAMES_OFFSET``.
        package static func method(
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

        /// Makes a signal, for introspection. ``BusConnection/newSignal(_:_:_:to:)`` makes one to send.
        ///
        /// The corresponding C macro is ``SD_BUS_SIGNAL_WITH_NAMES``.
        package static func signal(_ name: String, _ arguments: KeyValuePairs<String, String> = [:]) -> Member {
            Member(name: name, kind: .signal(arguments.map(Argument.init)))
        }

        /// Makes a property that every caller can read who finds the object, unless its getter throws.
        ///
        /// A service whose callers may read different things has its own function for its tables, which says who may.
        ///
        /// - Parameter type: the signature of the value.
        ///
        /// The corresponding C macro is ``SD_BUS_PROPERTY``.
        package static func unguardedProperty(
            _ name: String,
            _ type: String,
            changes: PropertyChanges,
            _ getter: @escaping Getter
        ) -> Member {
            Member(name: name, kind: .property(type: type, changes: changes, getter))
        }
    }
}

/// How a property changes. It can't announce changes, because PropertiesChanged is a broadcast to every user.
package enum PropertyChanges: Sendable {
    /// It changes without a signal (EmitsChangedSignal is `false`).
    case silently
    /// It never changes (EmitsChangedSignal is `const`).
    case never
}

/// The name and signature of a method's or signal's argument.
struct Argument: Sendable {
    let name: String
    let signature: String

    init(_ pair: (key: String, value: String)) {
        name = pair.key
        signature = pair.value
    }
}
