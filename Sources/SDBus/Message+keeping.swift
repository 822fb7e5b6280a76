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
    /// The corresponding C functions are ``sd_bus_message_new_method_call`` and ``sd_bus_message_seal``.
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
        copy.hasArguments = hasArguments
        if let sender = sd_bus_message_get_sender(message), sd_bus_message_set_sender(result, sender) < 0 { return nil }
        sd_bus_message_set_expect_reply(result, sd_bus_message_get_expect_reply(message))
        if hasArguments {
            guard sd_bus_message_rewind(message, 1) >= 0, Self.copyRest(of: message, to: result) else { return nil }
        }
        guard sd_bus_message_seal(result, cookie, 0) >= 0, sd_bus_message_rewind(result, 1) >= 0 else { return nil }
        return copy
    }

    /// Appends to another message what is left of this one, or of the container entered last.
    ///
    /// ``sd_bus_message_copy`` copies one number of an array after the other, which takes a tenth of a second for a
    /// mebibyte of bytes. So arrays of numbers are copied as a whole here, and all else is left to that function.
    private static func copyRest(of source: OpaquePointer, to copy: OpaquePointer) -> Bool {
        var type: CChar = 0
        var contents: UnsafePointer<CChar>?
        while true {
            let found = sd_bus_message_peek_type(source, &type, &contents)
            if found <= 0 { return found == 0 }
            guard copyNext(type, contents, of: source, to: copy) else { return false }
        }
    }

    private static func copyNext(
        _ type: CChar, _ contents: UnsafePointer<CChar>?, of source: OpaquePointer, to copy: OpaquePointer
    ) -> Bool {
        guard let contents else { return sd_bus_message_copy(copy, source, 0) > 0 }
        if type == .array, let number = CChar.number(in: contents) {
            var numbers: UnsafeRawPointer?
            var size = 0
            // This can't be done if the sender's byte order is the other one.
            if sd_bus_message_read_array(source, number.type, &numbers, &size) > 0 {
                return sd_bus_message_append_array(copy, number.type, numbers, size) >= 0
            }
        }
        guard strpbrk(contents, "av") != nil else { return sd_bus_message_copy(copy, source, 0) > 0 }
        return sd_bus_message_enter_container(source, type, contents) > 0
            && sd_bus_message_open_container(copy, type, contents) >= 0
            && copyRest(of: source, to: copy)
            && sd_bus_message_close_container(copy) >= 0 && sd_bus_message_exit_container(source) >= 0
    }
}
