// SPDX-License-Identifier: Apache-2.0

internal import CSystemd

/// A registration on a ``BusConnection``, which ends when the last reference is released.
///
/// Not Sendable: it is held and released by code of ``BusActor`` only.
///
/// The corresponding C type is ``sd_bus_slot``.
public final class Slot {
    private let slot: OpaquePointer
    /// The target of the callbacks' userdata.
    private let target: AnyObject?

    init(owning slot: OpaquePointer, target: AnyObject? = nil) {
        self.slot = slot
        self.target = target
    }

    deinit {
        sd_bus_slot_unref(slot)
    }
}
