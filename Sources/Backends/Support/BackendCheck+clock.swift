// SPDX-License-Identifier: Apache-2.0

package import Replication

extension BackendCheck {
    /// Compares the clocks. Nothing depends on the server's, but this device's decides which of two values is later.
    /// - Parameter date: seconds since 1970, by the server's clock; `nil` if unknown.
    package static func clock(_ date: Int?, _ environment: Environment) -> BackendCheck {
        guard let date else {
            return BackendCheck(step: "clock", isPassed: true, detail: "The server does not say what time it is.")
        }
        let offset = date - Int(environment.time() / 1_000_000)
        var detail = ""
        if abs(offset) > 2 {
            detail = "The server's clock is \(length(abs(offset))) \(offset > 0 ? "ahead of" : "behind") this device's."
            if abs(offset) > 60 {
                detail +=
                    " If this device's clock is wrong, its values can win over later ones of other devices, or lose to "
                    + "earlier ones."
            }
        }
        // No mistaken time zone explains more than a day.
        return BackendCheck(step: "clock", isPassed: true, isDoubtful: abs(offset) > 86_400, detail: detail)
    }

    /// Returns a duration in the largest unit of which there are at least two.
    private static func length(_ seconds: Int) -> String {
        for (unit, size) in [("days", 86_400), ("hours", 3600), ("min", 60)] where seconds >= 2 * size {
            return "\(seconds / size) \(unit)"
        }
        return "\(seconds) s"
    }
}
