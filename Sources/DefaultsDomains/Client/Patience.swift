// SPDX-License-Identifier: Apache-2.0

internal import SDBus
internal import UbiquitousStore

/// Repeats a call while the service is overloaded. The service refuses calls then with the error that it also has for
/// the user's limits, so the refusal counts only if it lasts.
struct Patience {
    /// The times between attempts, almost four seconds together.
    var delays: [Duration] = [.milliseconds(250), .milliseconds(500), .seconds(1), .seconds(2)]

    /// - Throws: what the last attempt throws, and any other error than `limitsExceeded` at once.
    @BusActor
    func call<Answer>(_ body: () async throws -> Answer) async throws -> Answer {
        for delay in delays {
            do { return try await body() } catch let error as UbiquitousStoreError where error.code == .limitsExceeded {
                try await Task.sleep(for: delay)
            }
        }
        return try await body()
    }

    /// For a process's own writes, which otherwise are taken back: almost sixteen seconds.
    static let long = Patience(delays: Patience().delays + [.seconds(4), .seconds(8)])

    /// No patience, for calls that are made again in parts when they are refused.
    static let none = Patience(delays: [])
}
