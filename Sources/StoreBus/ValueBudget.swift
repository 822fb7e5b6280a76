// SPDX-License-Identifier: Apache-2.0

public import PropertyList
internal import SDBus

/// How much of a value is read before it is known that it is too large.
///
/// A message of 32 MiB can hold millions of values, each of which takes many times its bytes in memory. So what is read is
/// counted, in bytes as ``Value/size`` counts them and in memory, and reading ends where a store could not take it.
public struct ValueBudget: Sendable {
    /// How deep a value may be nested.
    public let maximumDepth: Int
    /// What was read, at least.
    public private(set) var bytes = 0
    /// Whether reading ended because there was too much.
    public private(set) var isExceeded = false

    private let maximumBytes: Int
    /// A value with more elements is larger than a value may be, whatever they are: each counts for a byte at least.
    private let maximumElements: Int
    private var elements = 0
    private let maximumMemory: Int
    private var memory = 0

    /// No bound but that of the depth.
    init(maximumDepth: Int) {
        self.maximumDepth = maximumDepth
        (maximumBytes, maximumMemory, maximumElements) = (.max, .max, .max)
    }

    /// A budget for values of a store: twice what the store may hold, since what isn't far beyond is for the store to
    /// judge, and device-local keys have limits of their own.
    ///
    /// - Parameter memory: the memory that the values may take, in bytes; `nil`: 64 times what the store may hold.
    public init(for limits: Limits, memory: Int? = nil) {
        maximumDepth = limits.depth
        maximumBytes = 2 * limits.totalBytes
        maximumMemory = memory ?? 64 * limits.totalBytes
        maximumElements = limits.valueBytes
    }

    /// The largest data that is looked at: what is larger fails before it is copied.
    var largestData: Int { maximumBytes == .max ? .max : maximumBytes - bytes }

    /// What an array or an entry of a dictionary takes beside its values, about.
    static let container = 64

    mutating func spend(_ bytes: Int, memory: Int = 0) throws(BusError) {
        self.bytes = self.bytes.addingReportingOverflow(bytes).partialValue
        self.memory += 24 + bytes + memory
        if self.bytes <= maximumBytes, self.memory <= maximumMemory { return }
        throw exceed()
    }

    /// A value of a store begins, which may have as many elements as any other.
    mutating func beginValue() { elements = 0 }

    /// Counts an element of an array or a dictionary.
    mutating func spendElement() throws(BusError) {
        elements += 1
        if elements > maximumElements { throw exceed() }
    }

    /// Ends the reading.
    mutating func exceed() -> BusError {
        isExceeded = true
        bytes = max(bytes, maximumBytes + 1)
        return .store(.quotaExceeded, "The values are far larger than a store may be.")
    }
}
