// SPDX-License-Identifier: Apache-2.0

internal import CSystemd

/// Something registered at a ``BusConnection``, until the last reference is released.
///
/// Not Sendable: it is held and released by code of ``BusActor`` only.
///
/// The corresponding C type is ``sd_bus_slot``.
public final class Slot {
    private let slot: OpaquePointer
    /// What the callbacks' userdata leads to.
    private let target: AnyObject?

    init(owning slot: OpaquePointer, target: AnyObject? = nil) {
        self.slot = slot
        self.target = target
    }

    deinit {
        sd_bus_slot_unref(slot)
    }
}
