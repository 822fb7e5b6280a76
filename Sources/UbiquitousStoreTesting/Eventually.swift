// SPDX-License-Identifier: Apache-2.0

/// A condition did not become true in time.
public struct DeadlinePassed: Error, CustomStringConvertible {
    /// The condition, in words.
    public let description: String
}

/// Waits until a condition holds. The condition is evaluated repeatedly, so it must change nothing.
///
/// - Parameters:
///   - what: the condition in words, for the error.
///   - limit: the time limit, generous by default because machines that run tests are busy.
/// - Throws: ``DeadlinePassed``, or what the condition throws.
public func eventually(
    _ what: String,
    within limit: Duration = .seconds(60),
    _ condition: () async throws -> Bool
) async throws {
    let end = ContinuousClock.now + limit
    while try await !condition() {
        if ContinuousClock.now >= end { throw DeadlinePassed(description: "This did not happen: \(what)") }
        try await Task.sleep(for: .milliseconds(5))
    }
}
