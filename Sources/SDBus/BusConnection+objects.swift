// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc

/// Objects that other programs can call.
extension BusConnection {
    /// Registers an interface on one object, for all callers.
    ///
    /// - Returns: the registration, which ends when it is released. It keeps the connection and the object.
    /// - Throws: ``BusError`` if the path is invalid or has the interface already, or if a name or signature in the
    ///   table is invalid.
    ///
    /// The corresponding C function is ``sd_bus_add_object_vtable``.
    package func register<Object: AnyObject>(
        _ interface: Interface<Object>,
        at path: String,
        _ object: Object
    ) throws(BusError) -> Slot {
        try startAdmission()
        let registration = Registration(interface, at: path, on: self, object: object)
        var slot: OpaquePointer?
        let result = sd_bus_add_object_vtable(
            bus,
            &slot,
            path,
            interface.name,
            registration.vtable,
            Unmanaged.passUnretained(registration).toOpaque()
        )
        return try own(slot, result, registration)
    }

    /// Registers an interface on all objects at and below a path.
    ///
    /// - Parameters:
    ///   - prefix: the path. `find` is called for it too.
    ///   - find: returns the object that `path` is for this caller, loaded or not. If it is `nil`, calls, properties
    ///     and introspection see no object. An error is the answer to the call. It must not wait for anything. It isn't
    ///     called for callers whose user the bus can't tell: they get AccessDenied.
    /// - Returns: the registration, which ends when it is released. It keeps the connection and `find`.
    /// - Throws: ``BusError`` if the path is invalid, or if a name or signature in the table is.
    ///
    /// The corresponding C function is ``sd_bus_add_fallback_vtable``.
    package func register<Object: AnyObject>(
        _ interface: Interface<Object>,
        under prefix: String,
        find: @escaping @BusActor (_ path: String, _ peer: Peer) throws -> Located<Object>?
    ) throws(BusError) -> Slot {
        try startAdmission()
        let registration = Registration(interface, under: prefix, on: self, find: find)
        var slot: OpaquePointer?
        let result = sd_bus_add_fallback_vtable(
            bus,
            &slot,
            prefix,
            interface.name,
            registration.vtable,
            findObject,
            Unmanaged.passUnretained(registration).toOpaque()
        )
        return try own(slot, result, registration)
    }

    /// Lists objects for introspection.
    ///
    /// - Parameters:
    ///   - prefix: the path at and below which `children` is called.
    ///   - children: returns whole paths below the given path, for this caller.
    /// - Returns: the registration, which ends when it is released. It keeps the connection and `children`.
    /// - Throws: ``BusError`` if the path is invalid.
    ///
    /// The corresponding C function is ``sd_bus_add_node_enumerator``.
    package func enumerate(
        under prefix: String,
        _ children: @escaping @BusActor (_ prefix: String, _ peer: Peer) -> [String]
    ) throws(BusError) -> Slot {
        try startAdmission()
        let enumerator = Enumerator(self, children)
        var slot: OpaquePointer?
        let result = sd_bus_add_node_enumerator(
            bus,
            &slot,
            prefix,
            listObjects,
            Unmanaged.passUnretained(enumerator).toOpaque()
        )
        return try own(slot, result, enumerator)
    }

    private func own(_ slot: OpaquePointer?, _ result: Int32, _ target: AnyObject) throws(BusError) -> Slot {
        try check(result, "registering an interface")
        guard let slot else { throw BusError(errno: ENOMEM) }
        return Slot(owning: slot, target: target)
    }
}

/// The target of an enumerator's userdata.
@BusActor
private final class Enumerator {
    private let connection: BusConnection
    private let children: @BusActor (_ prefix: String, _ peer: Peer) -> [String]

    init(_ connection: BusConnection, _ children: @escaping @BusActor (_ prefix: String, _ peer: Peer) -> [String]) {
        self.connection = connection
        self.children = children
    }

    func paths(under prefix: String) -> [String] {
        guard let peer = connection.peers.current() else { return [] }
        return children(prefix, peer)
    }
}

/// sd_bus_node_enumerator_t.
private func listObjects(
    _ bus: OpaquePointer?,
    _ prefix: UnsafePointer<CChar>?,
    _ userdata: UnsafeMutableRawPointer?,
    _ nodes: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?>?,
    _ error: UnsafeMutablePointer<sd_bus_error>?
) -> Int32 {
    let paths: [String] = BusActor.assumeIsolated(lending: (prefix, userdata)) { lent in
        guard case (let prefix?, let userdata?) = lent else { return [] }
        return Unmanaged<Enumerator>.fromOpaque(userdata).takeUnretainedValue().paths(under: String(cString: prefix))
    }
    // libsystemd frees the list and its strings with free().
    let size = (paths.count + 1) * MemoryLayout<UnsafeMutablePointer<CChar>?>.stride
    guard let list = malloc(size)?.assumingMemoryBound(to: UnsafeMutablePointer<CChar>?.self) else { return -ENOMEM }
    for (index, path) in paths.enumerated() { list[index] = strdup(path) }
    list[paths.count] = nil
    nodes?.pointee = list
    return 0
}
