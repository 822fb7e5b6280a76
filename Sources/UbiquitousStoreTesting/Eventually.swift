// SPDX-License-Identifier: Apache-2.0

/// A condition did not become true in time.
public struct DeadlinePassed: Error, CustomStringConvertible {
    /// The condition, in words.
    public let description: String
}

/// Waits until a condition holds. The condition is evaluated repeatedly, so it must change nothing.
///
/// It is evaluated at least ten times, even if the process was stopped until the time was over.
///
/// - Parameters:
///   - what: the condition in words, for the error.
///   - limit: the time limit, generous by default because machines that run tests are busy.
/// - Throws: ``DeadlinePassed``, or what the condition throws.
public func eventually(
    _ what: String,
    within limit: Duration = .seconds(180),
    _ condition: () async throws -> Bool
) async throws {
    let end = ContinuousClock.now + limit
    var looks = 0
    while true {
        // Read the clock first: the process may be stopped while it evaluates the condition.
        let isOver = ContinuousClock.now >= end && looks >= 9
        if try await condition() { return }
        if isOver { throw DeadlinePassed(description: "This did not happen: \(what)") }
        looks += 1
        try await Task.sleep(for: .milliseconds(5))
    }
}
