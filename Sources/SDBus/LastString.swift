// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// The string that came last: where it most often comes again, it is neither checked nor copied anew.
struct LastString {
    private var value = ""
    private var bytes: ContiguousArray<CChar> = [0]

    /// A C string as a string.
    mutating func string(_ cString: UnsafePointer<CChar>) -> String {
        if bytes.withUnsafeBufferPointer({ $0.baseAddress.map { strcmp($0, cString) } }) != 0 {
            value = String(cString: cString)
            bytes = ContiguousArray(value.utf8CString)
        }
        return value
    }
}
