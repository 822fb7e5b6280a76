// SPDX-License-Identifier: Apache-2.0

internal import CSystemd

// Calls that are kept for later.
//
// A message may have more than can be read of it: unknown header fields, and bytes after its last argument. dbus-daemon
// strips the former and refuses the latter; dbus-broker passes the former on. libsystemd keeps all of it as long as the
// message, and doesn't tell its size. So what is kept is a measured copy of what can be read.
extension Message {
    /// Copies a call, with only what can be read of it. The copy is at the beginning of its arguments.
    ///
    /// - Parameter hasArguments: whether to copy the arguments. Without them the copy can only be answered.
    /// - Returns: `nil` if the arguments are broken.
    ///
    /// The corresponding C functions are ``sd_bus_message_copy`` and ``sd_bus_message_seal``.
    func copy(on bus: OpaquePointer, withArguments hasArguments: Bool = true) -> Message? {
        var result: OpaquePointer?
        var cookie: UInt64 = 0
        guard sd_bus_message_get_cookie(message, &cookie) >= 0,
            sd_bus_message_new_method_call(
                bus, &result, sd_bus_message_get_destination(message), sd_bus_message_get_path(message),
                sd_bus_message_get_interface(message), sd_bus_message_get_member(message)) >= 0,
            let result
        else { return nil }
        let copy = Message(owning: result)
        if let sender = sd_bus_message_get_sender(message), sd_bus_message_set_sender(result, sender) < 0 { return nil }
        sd_bus_message_set_expect_reply(result, sd_bus_message_get_expect_reply(message))
        if hasArguments {
            guard sd_bus_message_rewind(message, 1) >= 0, sd_bus_message_copy(result, message, 1) >= 0 else {
                return nil
            }
        }
        guard sd_bus_message_seal(result, cookie, 0) >= 0, sd_bus_message_rewind(result, 1) >= 0 else { return nil }
        return copy
    }
}
