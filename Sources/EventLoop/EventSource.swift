// SPDX-License-Identifier: Apache-2.0

internal import CSystemd

/// Something that the ``EventLoop`` waits for; releasing the last reference cancels it, as ``cancel()`` does.
///
/// Not Sendable: it is held and released by code of ``BusActor`` only.
///
/// The corresponding C type is ``sd_event_source``.
public final class EventSource {
    /// What happened: the name of the file, where a directory is watched, and what a descriptor is ready for.
    typealias Action = @BusActor (_ name: String?, _ readiness: Readiness) -> Void

    private var source: OpaquePointer?
    private var action: Action?
    private let isOneShot: Bool

    init(isOneShot: Bool = false, _ action: @escaping Action) {
        self.action = action
        self.isOneShot = isOneShot
    }

    deinit {
        cancel()
    }

    /// Doesn't wait any longer; the action is released and not called again.
    ///
    /// The corresponding C function is ``sd_event_source_disable_unref``.
    public func cancel() {
        source = sd_event_source_disable_unref(source)
        action = nil
    }

    /// Has `add` make the C source, whose userdata leads to this object.
    func attach(_ add: (inout OpaquePointer?, UnsafeMutableRawPointer) -> Int32) -> Int32 {
        add(&source, Unmanaged.passUnretained(self).toOpaque())
    }

    /// Closes the descriptor that it waits for with itself.
    ///
    /// The corresponding C function is ``sd_event_source_set_io_fd_own``.
    func own() { sd_event_source_set_io_fd_own(source, 1) }

    /// Calls the action of the source that `userdata` leads to; for the C callbacks.
    static func fire(_ userdata: UnsafeMutableRawPointer?, name: String? = nil, readiness: UInt32 = 0) -> Int32 {
        BusActor.assumeIsolated(lending: (userdata, name, readiness)) { userdata, name, readiness in
            guard let userdata else { return }
            let source = Unmanaged<EventSource>.fromOpaque(userdata).takeUnretainedValue()
            source.fire(name, Readiness(rawValue: readiness))
        }
        return 0
    }

    @BusActor
    private func fire(_ name: String?, _ readiness: Readiness) {
        let action = action
        // Before the action, which may hold this source: a circle that has served its purpose.
        if isOneShot { cancel() }
        action?(name, readiness)
    }
}
