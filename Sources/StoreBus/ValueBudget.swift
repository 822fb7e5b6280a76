// SPDX-License-Identifier: Apache-2.0

package import PropertyList
internal import SDBus

/// How much of a value may be read before it is known to be too large.
///
/// A message of 32 MiB can hold millions of values, each of which takes many times its bytes in memory. So what is read
/// is counted, both in bytes as ``Value/size`` counts them and in memory, and reading stops at what no store can hold.
package struct ValueBudget: Sendable {
    /// The most containers around a value.
    package let maximumDepth: Int
    /// The bytes read so far; once the budget is exceeded, more than it allows.
    package private(set) var bytes = 0
    /// Whether reading stopped because the budget was exceeded.
    package private(set) var isExceeded = false

    private let maximumBytes: Int
    /// The most elements of a value. With more it would be too large, because each counts for at least a byte.
    private let maximumElements: Int
    private var elements = 0
    private let maximumMemory: Int
    private var memory = 0

    /// Makes a budget that bounds only the depth.
    init(maximumDepth: Int) {
        self.maximumDepth = maximumDepth
        (maximumBytes, maximumMemory, maximumElements) = (.max, .max, .max)
    }

    /// Makes a budget for a store's values: twice what the store may hold, because the store itself judges what is
    /// slightly too large, and device-local keys have limits of their own.
    ///
    /// - Parameter memory: the memory that the values may take, in bytes; `nil` is 64 times what the store may hold.
    package init(for limits: Limits, memory: Int? = nil) {
        maximumDepth = limits.depth
        maximumBytes = 2 * limits.totalBytes
        maximumMemory = memory ?? 64 * limits.totalBytes
        maximumElements = limits.valueBytes
    }

    /// The largest data that is copied. Reading larger data fails before it is copied.
    var largestData: Int { maximumBytes == .max ? .max : maximumBytes - bytes }

    /// About the memory that an array or an entry of a dictionary takes besides its values.
    static let container = 64

    mutating func spend(_ bytes: Int, memory: Int = 0) throws(BusError) {
        self.bytes = self.bytes.addingReportingOverflow(bytes).partialValue
        self.memory += 24 + bytes + memory
        if self.bytes <= maximumBytes, self.memory <= maximumMemory { return }
        throw exceed()
    }

    /// Begins one of a store's values. Each may have the maximum of elements.
    mutating func beginValue() { elements = 0 }

    /// Counts an element of an array or a dictionary.
    mutating func spendElement() throws(BusError) {
        elements += 1
        if elements > maximumElements { throw exceed() }
    }

    /// Marks the budget as exceeded, and returns the error.
    mutating func exceed() -> BusError {
        isExceeded = true
        bytes = max(bytes, maximumBytes + 1)
        return .store(.quotaExceeded, "The values are far larger than a store may be.")
    }
}
