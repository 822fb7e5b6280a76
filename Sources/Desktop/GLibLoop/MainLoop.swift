// SPDX-License-Identifier: Apache-2.0

// Runs the main actor on GLib's main loop.
//
// On Linux, the main actor's code is queued on libdispatch's main queue, which signals an eventfd. Here that eventfd is
// a source of GLib's default main context, and its callback drains the queue. So @MainActor, DispatchQueue.main and
// OperationQueue.main all run between GTK's events. Timers of RunLoop.main don't: use tasks that sleep, or GLib's.

internal import CGio
internal import Glibc

/// GLib's main loop.
package enum MainLoop {
    /// Makes GLib's default main context run the main actor's jobs. Call it once, before the loop runs.
    @MainActor package static func install() {
        _ = g_unix_fd_add(
            _dispatch_get_main_queue_handle_4CF(), G_IO_IN,
            { descriptor, _, _ in
                // Clear it first: a source that stays readable would spin, and starve drawing, whose priority is lower.
                var count: eventfd_t = 0
                _ = eventfd_read(descriptor, &count)
                _dispatch_main_queue_callback_4CF(nil)
                return gboolean(1)
            }, nil)
    }
}
