// SPDX-License-Identifier: Apache-2.0

/// One step of trying a backend out.
public struct BackendCheck: Equatable, Sendable {
    /// What was tried, in one or two words.
    public let step: String
    /// Whether it worked.
    public let isPassed: Bool
    /// A sentence for users; empty where there is nothing to say.
    public let detail: String

    /// A step of its parts.
    public init(step: String, isPassed: Bool, detail: String = "") {
        self.step = step
        self.isPassed = isPassed
        self.detail = detail
    }
}
