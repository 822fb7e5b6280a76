// SPDX-License-Identifier: Apache-2.0

internal import CSystemd

/// A registration on a ``BusConnection``, which ends when the last reference is released.
///
/// That may be on any thread, such as that of a test's end. The registration ends on the loop's thread.
///
/// The corresponding C type is ``sd_bus_slot``.
@BusActor
public final class Slot {
    private let slot: OpaquePointer
    /// The target of the callbacks' userdata.
    private let target: AnyObject?

    init(owning slot: OpaquePointer, target: AnyObject? = nil) {
        self.slot = slot
        self.target = target
    }

    isolated deinit {
        sd_bus_slot_unref(slot)
    }
}
