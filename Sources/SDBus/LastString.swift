// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc

/// The last string. If the same one comes again, as it mostly does, it is neither validated nor copied again.
struct LastString {
    private var value = ""
    private var bytes: ContiguousArray<CChar> = [0]

    /// Converts a C string.
    mutating func string(_ cString: UnsafePointer<CChar>) -> String {
        note(cString)
        return value
    }

    /// Remembers a C string; `nil` counts as the empty one.
    /// - Returns: whether it is the same as the last one.
    @discardableResult
    mutating func note(_ cString: UnsafePointer<CChar>?) -> Bool {
        guard let cString else {
            defer { self = LastString() }
            return value.isEmpty
        }
        if bytes.withUnsafeBufferPointer({ $0.baseAddress.map { strcmp($0, cString) } }) == 0 { return true }
        value = String(cString: cString)
        bytes = ContiguousArray(value.utf8CString)
        return false
    }
}

/// The last method. If it is called again, as it mostly is, what is known of it is found without its name.
package struct LastMethod {
    private var interface = LastString()
    private var member = LastString()

    /// Begins without a method.
    package init() {}

    /// Remembers the method of a call.
    /// - Returns: whether it is the same as the last one, with the same interface, or again without one.
    package mutating func note(_ call: Message) -> Bool {
        let isSameInterface = interface.note(sd_bus_message_get_interface(call.message))
        return member.note(sd_bus_message_get_member(call.message)) && isSameInterface
    }
}
