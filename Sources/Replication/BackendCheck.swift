// SPDX-License-Identifier: Apache-2.0

/// One step of testing a remote, as `ubiquitousctl doctor` prints it.
public struct BackendCheck: Equatable, Sendable {
    /// The step's name, in one or two words.
    public let step: String
    /// Whether the step succeeded.
    public let isPassed: Bool
    /// What was found, or the reason of the failure, as a sentence for users; may be empty.
    public let detail: String

    /// Makes a step from its parts.
    public init(step: String, isPassed: Bool, detail: String = "") {
        self.step = step
        self.isPassed = isPassed
        self.detail = detail
    }
}
