// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc

/// The string that came last: where it most often comes again, it is neither checked nor copied anew.
struct LastString {
    private var value = ""
    private var bytes: ContiguousArray<CChar> = [0]

    /// A C string as a string.
    mutating func string(_ cString: UnsafePointer<CChar>) -> String {
        note(cString)
        return value
    }

    /// Remembers a C string; `nil` is the empty one.
    /// - Returns: whether it is the one that came last.
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

/// The method that was called last: where it most often is called again, what is known of it is found without its name.
public struct LastMethod {
    private var interface = LastString()
    private var member = LastString()

    /// No method.
    public init() {}

    /// Remembers the method of a call.
    /// - Returns: whether it is the one that was called last, and through the same interface, if the call names one.
    public mutating func note(_ call: Message) -> Bool {
        let isSameInterface = interface.note(sd_bus_message_get_interface(call.message))
        return member.note(sd_bus_message_get_member(call.message)) && isSameInterface
    }
}
