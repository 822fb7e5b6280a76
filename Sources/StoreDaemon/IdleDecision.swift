// SPDX-License-Identifier: Apache-2.0

internal import Logging

/// What the service does after it has been idle for the configured time.
enum IdleDecision: Equatable {
    /// End, because the bus starts the service again with the next call.
    case endUntilCalled
    /// End although nothing starts the service again, because the settings ask for it.
    case end
    /// Stay, because nothing would start the service again and the settings don't ask it to end.
    case stay

    init(isActivatable: Bool, isAskedFor: Bool) {
        self = isActivatable ? .endUntilCalled : isAskedFor ? .end : .stay
    }

    var level: Logger.Level { self == .end ? .notice : .info }

    func sentence(after delay: Duration) -> String {
        let words = "Idle for \(delay.components.seconds) s"
        return switch self {
        case .endUntilCalled: "\(words): ending until the next call."
        case .end:
            """
            \(words): ending. Nothing on this bus starts the service again when it is called; to keep it, start it \
            with --idle-exit 0 or set IdleExit=0.
            """
        case .stay:
            """
            \(words): staying, since nothing on this bus starts the service again when it is called. To have it end, \
            start it with --idle-exit \(delay.components.seconds), or set IdleExit=.
            """
        }
    }
}
