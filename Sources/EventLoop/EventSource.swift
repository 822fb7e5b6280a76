// SPDX-License-Identifier: Apache-2.0

internal import CSystemd

/// An event that the ``EventLoop`` waits for. Releasing the last reference cancels it, as ``cancel()`` does.
///
/// That may be on any thread. The event is cancelled on the loop's thread.
///
/// The corresponding C type is ``sd_event_source``.
@BusActor
package final class EventSource {
    /// The action: gets the file's name if a directory is watched, and what a descriptor is ready for.
    typealias Action = @BusActor (_ name: String?, _ readiness: Readiness) -> Void

    private var source: OpaquePointer?
    private var action: Action?
    private let isOneShot: Bool

    init(isOneShot: Bool = false, _ action: @escaping Action) {
        self.action = action
        self.isOneShot = isOneShot
    }

    isolated deinit {
        cancel()
    }

    /// Stops waiting. The action is released and not called again.
    ///
    /// The corresponding C function is ``sd_event_source_disable_unref``.
    package func cancel() {
        source = sd_event_source_disable_unref(source)
        action = nil
    }

    /// Makes the C source with `add`. Its userdata points to this object.
    func attach(_ add: (inout OpaquePointer?, UnsafeMutableRawPointer) -> Int32) -> Int32 {
        add(&source, Unmanaged.passUnretained(self).toOpaque())
    }

    /// Makes the source close its descriptor when it ends.
    ///
    /// The corresponding C function is ``sd_event_source_set_io_fd_own``.
    func own() { sd_event_source_set_io_fd_own(source, 1) }

    /// Calls the action of the source that `userdata` points to, for the C callbacks.
    nonisolated static func fire(_ userdata: UnsafeMutableRawPointer?, name: String? = nil, readiness: UInt32 = 0)
        -> Int32
    {
        BusActor.assumeIsolated(lending: (userdata, name, readiness)) { userdata, name, readiness in
            guard let userdata else { return }
            let source = Unmanaged<EventSource>.fromOpaque(userdata).takeUnretainedValue()
            source.fire(name, Readiness(rawValue: readiness))
        }
        return 0
    }

    private func fire(_ name: String?, _ readiness: Readiness) {
        let action = action
        // Cancel first: the action may hold this source, and the cycle is no longer needed.
        if isOneShot { cancel() }
        action?(name, readiness)
    }
}
