// SPDX-License-Identifier: Apache-2.0

internal import CGio

/// Calls a handler again and again, or once, on the main loop; ends when it is released.
@MainActor
public final class Timer {
    private let handler: @MainActor () -> Void
    private let repeats: Bool
    private var source: guint = 0

    /// - Parameter seconds: between two calls, at least 1. Whole seconds, so that the system can put wakeups together.
    public init(every seconds: UInt32, _ handler: @escaping @MainActor () -> Void) {
        (self.handler, repeats) = (handler, true)
        start(seconds)
    }

    /// - Parameter seconds: until the only call.
    public init(after seconds: UInt32, _ handler: @escaping @MainActor () -> Void) {
        (self.handler, repeats) = (handler, false)
        start(seconds)
    }

    private func start(_ seconds: UInt32) {
        source = g_timeout_add_seconds_full(
            G_PRIORITY_DEFAULT, max(1, seconds),
            { data in
                nonisolated(unsafe) let data = data
                // The source goes in deinit, so the timer is there.
                return MainActor.assumeIsolated {
                    data.map { Unmanaged<Timer>.fromOpaque($0).takeUnretainedValue().fire() } ?? 0
                }
            }, Unmanaged.passUnretained(self).toOpaque(), nil)
    }

    private func fire() -> gboolean {
        // The handler may release the timer.
        let timer = self
        if !repeats { timer.source = 0 }
        handler()
        return timer.repeats ? 1 : 0
    }

    isolated deinit {
        if source != 0 { g_source_remove(source) }
    }
}
