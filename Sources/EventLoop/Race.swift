// SPDX-License-Identifier: Apache-2.0

/// A race between several results for a continuation, of which the first counts.
@BusActor
package final class Race<Value: Sendable, Failure: Error> {
    private var continuation: CheckedContinuation<Value, Failure>?

    /// Begins a race. Its continuation waits until a result ends it.
    package init(_ continuation: CheckedContinuation<Value, Failure>) { self.continuation = continuation }

    /// Ends the race, unless it is over.
    package func end(_ result: Result<Value, Failure>) {
        continuation?.resume(with: result)
        continuation = nil
    }
}
