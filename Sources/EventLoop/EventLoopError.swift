// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc

/// The kernel can't watch what the event loop should wait for.
package struct EventLoopError: Error, Equatable, CustomStringConvertible {
    /// The errno, positive.
    package let code: Int32
    /// What was being done.
    private let action: String

    /// - Parameter code: an errno of either sign; `Int32.min` means none.
    init(_ code: Int32, _ action: String) {
        self.code = code == .min ? EINVAL : abs(code)
        self.action = action
    }

    /// What was being done, and the kernel's reason.
    package var description: String {
        "\(action): \(String(cString: strerror(code)))"
    }
}

/// Turns a negative result of sd-event into an error that says what was being done.
@discardableResult
func check(_ result: Int32, _ action: StaticString) throws(EventLoopError) -> Int32 {
    if result < 0 { throw EventLoopError(result, action.description) }
    return result
}

/// Traps if sd-event fails, which can only be a program error or a lack of memory.
func require(_ result: Int32, _ function: StaticString) {
    precondition(result >= 0, EventLoopError(result, function.description).description)
}
