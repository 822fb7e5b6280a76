// SPDX-License-Identifier: Apache-2.0

internal import CSystemd

/// An interface's table as libsystemd expects it, and the memory that it points to.
final class VTable {
    let entries: UnsafeMutableBufferPointer<sd_bus_vtable>
    private var strings: [UnsafeMutablePointer<CChar>] = []

    /// Makes an entry for each member, whose userdata is the target at the same index. Targets aren't kept.
    init<Object>(_ interface: Interface<Object>, targets: [some AnyObject]) {
        entries = .allocate(capacity: interface.members.count + 2)
        entries.initializeElement(at: 0, to: shim_vtable_start())
        for (index, (member, target)) in zip(interface.members, targets).enumerated() {
            entries.initializeElement(at: index + 1, to: entry(member, Unmanaged.passUnretained(target).toOpaque()))
        }
        entries.initializeElement(at: interface.members.count + 1, to: shim_vtable_end())
    }

    deinit {
        entries.deallocate()
        strings.forEach { $0.deallocate() }
    }

    private func entry<Object>(
        _ member: Interface<Object>.Member,
        _ target: UnsafeMutableRawPointer
    ) -> sd_bus_vtable {
        let name = string(member.name)
        switch member.kind {
        case .method(let arguments, let results, let sensitive, _):
            return shim_vtable_method(
                name,
                signature(arguments),
                signature(results),
                names(arguments + results),
                handleMethod,
                target,
                UInt64(SD_BUS_VTABLE_UNPRIVILEGED) | (sensitive ? UInt64(SD_BUS_VTABLE_SENSITIVE) : 0)
            )
        case .signal(let arguments):
            return shim_vtable_signal(name, signature(arguments), names(arguments))
        case .property(let type, let changes, _):
            return shim_vtable_property(
                name,
                string(type),
                getProperty,
                target,
                changes == .never ? UInt64(SD_BUS_VTABLE_PROPERTY_CONST) : 0
            )
        }
    }

    private func signature(_ arguments: [Argument]) -> UnsafePointer<CChar> {
        string(arguments.map(\.signature).joined())
    }

    /// Joins the names, each with its U+0000. The one that `string` adds ends the list.
    private func names(_ arguments: [Argument]) -> UnsafePointer<CChar> {
        string(arguments.map { $0.name + "\0" }.joined())
    }

    /// Makes a C string that lives as long as this table. strdup() won't do, because it may contain U+0000.
    private func string(_ string: String) -> UnsafePointer<CChar> {
        let bytes = string.utf8CString
        let copy = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count)
        for (index, byte) in bytes.enumerated() { copy[index] = byte }
        strings.append(copy)
        return UnsafePointer(copy)
    }
}
