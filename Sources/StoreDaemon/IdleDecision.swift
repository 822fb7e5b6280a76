// SPDX-License-Identifier: Apache-2.0

internal import Logging

/// What a service does that has had nothing to do for a while.
enum IdleDecision: Equatable {
    /// It ends: the bus starts it again with the next call.
    case rest
    /// It ends although nothing starts it again: the settings say so.
    case end
    /// It stays: nothing would start it again, and the settings don't ask for its end.
    case stay

    init(isActivatable: Bool, isAskedFor: Bool) {
        self = isActivatable ? .rest : isAskedFor ? .end : .stay
    }

    var level: Logger.Level { self == .end ? .notice : .info }

    func sentence(after delay: Duration) -> String {
        let words = "Nothing was to be done for \(delay.components.seconds) s"
        return switch self {
        case .rest: "\(words): ending until the next call."
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
