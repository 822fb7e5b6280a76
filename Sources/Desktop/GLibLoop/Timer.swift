// SPDX-License-Identifier: Apache-2.0

internal import CGio

/// Calls a handler repeatedly or once, on the main loop, until the timer is released.
@MainActor
package final class Timer {
    private let handler: @MainActor () -> Void
    private let repeats: Bool
    private var source: guint = 0

    /// - Parameter seconds: the time between two calls, at least 1. Whole seconds let the system combine wakeups.
    package init(every seconds: UInt32, _ handler: @escaping @MainActor () -> Void) {
        (self.handler, repeats) = (handler, true)
        start(seconds)
    }

    /// - Parameter seconds: the time until the only call, at least 1.
    package init(after seconds: UInt32, _ handler: @escaping @MainActor () -> Void) {
        (self.handler, repeats) = (handler, false)
        start(seconds)
    }

    private func start(_ seconds: UInt32) {
        source = g_timeout_add_seconds_full(
            G_PRIORITY_DEFAULT, max(1, seconds),
            { data in
                nonisolated(unsafe) let data = data
                // The timer still exists, because deinit removes the source.
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
