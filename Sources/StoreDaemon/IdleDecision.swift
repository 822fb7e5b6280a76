// SPDX-License-Identifier: Apache-2.0

internal import Logging

/// What a service does that has had nothing to do for a while.
enum IdleDecision: Equatable {
    /// It ends: the bus starts it again when it is called.
    case rest
    /// It ends, as somebody asked for, though nothing starts it again.
    case end
    /// It stays: nobody asked for it to end, and nothing would start it again.
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
