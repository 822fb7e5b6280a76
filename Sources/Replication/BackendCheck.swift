// SPDX-License-Identifier: Apache-2.0

/// One step of testing a remote, as `ubiquitousctl doctor` prints it.
public struct BackendCheck: Equatable, Sendable {
    /// The step's name, in one or two words.
    public let step: String
    /// Whether the step succeeded.
    public let isPassed: Bool
    /// Whether something is probably wrong although the step succeeded, such as a clock that is days off.
    public let isDoubtful: Bool
    /// What was found, or the reason of the failure, as a sentence for users; may be empty.
    public let detail: String
    /// The kind of failure; `nil` if the step succeeded, or failed for a reason of its own.
    public private(set) var code: RemoteError.Code?
    /// What is known of the failure beyond its kind.
    public private(set) var reason: RemoteError.Reason?

    /// Makes a step from its parts.
    public init(step: String, isPassed: Bool, isDoubtful: Bool = false, detail: String = "") {
        self.step = step
        self.isPassed = isPassed
        self.isDoubtful = isDoubtful
        self.detail = detail
    }

    /// Makes a step that failed.
    public init(step: String, failed error: RemoteError) {
        self.init(step: step, isPassed: false, detail: error.message)
        (code, reason) = (error.code, error.reason)
    }
}
