// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc

/// A message: a call, an answer or a signal.
///
/// An incoming message is read from front to back, an outgoing one is written in that order. Not Sendable: messages
/// don't leave the loop's thread; read values out of them instead.
///
/// The corresponding C type is ``sd_bus_message``.
public final class Message {
    let message: OpaquePointer
    /// The number of bytes that were written here; 0 for an incoming message.
    public internal(set) var size = 0
    /// The number of bytes beyond which writing fails.
    var limit = Int.max
    /// Whether the arguments of an incoming call are still there, so that it can be dispatched.
    public internal(set) var hasArguments = true

    /// Takes over the caller's reference.
    init(owning message: OpaquePointer) {
        self.message = message
    }

    /// Takes a reference of its own.
    init(retaining message: OpaquePointer) {
        self.message = sd_bus_message_ref(message)
    }

    deinit {
        sd_bus_message_unref(message)
    }

    /// The sender's unique name, for which the bus vouches; `nil` without a bus.
    public var sender: String? { string(sd_bus_message_get_sender(message)) }
    /// The name to which the message is sent; `nil` for a broadcast.
    public var destination: String? { string(sd_bus_message_get_destination(message)) }
    /// The object's path.
    public var path: String? { string(sd_bus_message_get_path(message)) }
    /// The length of the path in bytes.
    public var pathLength: Int { sd_bus_message_get_path(message).map(strlen) ?? 0 }
    /// The interface's name.
    public var interface: String? { string(sd_bus_message_get_interface(message)) }
    /// The name of the method or signal.
    public var member: String? { string(sd_bus_message_get_member(message)) }
    /// The types of the whole body.
    public var signature: String? { string(sd_bus_message_get_signature(message, 1)) }
    /// The error's name, if this is an error.
    public var errorName: String? { error?.name }
    /// Whether the sender waits for an answer.
    public var expectsReply: Bool { sd_bus_message_get_expect_reply(message) > 0 }

    /// The error, if this is one.
    var error: BusError? {
        guard sd_bus_message_is_method_error(message, nil) > 0, let error = sd_bus_message_get_error(message) else {
            return nil
        }
        return BusError(error.pointee)
    }

    /// Makes sd-bus erase the message's memory when it is freed, also at the other end if that uses sd-bus.
    ///
    /// The corresponding C function is ``sd_bus_message_sensitive``.
    public func markSensitive() {
        sd_bus_message_sensitive(message)
    }

    private func string(_ value: UnsafePointer<CChar>?) -> String? {
        value.map { String(cString: $0) }
    }
}
