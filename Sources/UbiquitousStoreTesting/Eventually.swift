// SPDX-License-Identifier: Apache-2.0

/// A condition that did not come true in time.
public struct DeadlinePassed: Error, CustomStringConvertible {
    /// What was waited for.
    public let description: String
}

/// Waits until a condition holds. It is asked again and again, so it must change nothing.
///
/// - Parameters:
///   - what: what is waited for, in words; the error says them.
///   - limit: generous by default, as machines that run tests have much else to do.
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
