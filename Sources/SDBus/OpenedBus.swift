// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc

/// A connection of libsystemd that has just been opened, for a ``BusConnection`` to own. It accepts no file descriptors
/// in messages.
@BusActor
struct OpenedBus {
    let bus: OpaquePointer
    /// Whether there is a bus daemon at the other end.
    var isBusClient = true
    /// The name that the bus gave this connection; `nil` without a bus.
    var uniqueName: String?
    /// What filters the headers of messages that arrive; `nil` if nothing does.
    var filtered: FilteredSocket?

    /// Connects to a bus.
    /// - Parameter description: a word for logs.
    static func plain(_ address: String, _ description: String) throws(BusError) -> OpenedBus {
        let bus = try make(description)
        var opened = OpenedBus(bus: bus)
        try opened.connect { () throws(BusError) in
            try check(sd_bus_set_address(bus, address), "the address of the bus")
        }
        return opened
    }

    /// Connects to a bus through a filter of headers.
    /// - Returns: `nil` if the address is no local socket's.
    static func filtered(_ address: String, _ description: String) throws(BusError) -> OpenedBus? {
        guard let (filtered, inlet) = try FilteredSocket.connect(to: address) else { return nil }
        let bus: OpaquePointer
        do throws(BusError) { bus = try make(description) } catch {
            Glibc.close(inlet)
            throw error
        }
        var opened = OpenedBus(bus: bus, filtered: filtered)
        try opened.connect { () throws(BusError) in
            let outlet = fcntl(filtered.bus, F_DUPFD_CLOEXEC, 3)
            let result = outlet < 0 ? -errno : sd_bus_set_fd(bus, inlet, outlet)
            if result < 0 {
                Glibc.close(inlet)
                if outlet >= 0 { Glibc.close(outlet) }
            }
            try check(result, "connecting to the bus")
        }
        return opened
    }

    /// Connects to another process, or to the other end of a pair of sockets.
    static func end(_ fd: Int32, isServer: Bool) throws(BusError) -> OpenedBus {
        let bus = try make(isServer ? "server" : "client")
        let opened = OpenedBus(bus: bus, isBusClient: false)
        try opened.closingOnFailure { () throws(BusError) in
            try check(sd_bus_set_fd(bus, fd, fd), "a pair of connections")
            try check(sd_bus_set_anonymous(bus, 1), "a pair of connections")
            if isServer {
                var id = sd_id128_t()
                try check(sd_id128_randomize(&id), "a pair of connections")
                try check(sd_bus_set_server(bus, 1, id), "a pair of connections")
            }
            try check(sd_bus_start(bus), "a pair of connections")
        }
        return opened
    }

    private static func make(_ description: String) throws(BusError) -> OpaquePointer {
        var bus: OpaquePointer?
        try check(sd_bus_new(&bus), "a connection")
        guard let bus else { throw BusError(errno: ENOMEM) }
        sd_bus_set_description(bus, description)
        sd_bus_negotiate_fds(bus, 0)
        return bus
    }

    /// Starts the connection, and waits for the bus's answer to Hello.
    /// - Parameter address: says where the bus is.
    private mutating func connect(to address: () throws(BusError) -> Void) throws(BusError) {
        let (bus, filtered) = (bus, filtered)
        uniqueName = try closingOnFailure { () throws(BusError) in
            try address()
            try check(sd_bus_set_bus_client(bus, 1), "connecting to the bus")
            try check(sd_bus_start(bus), "connecting to the bus")
            if let filtered {
                while try check(sd_bus_is_ready(bus), "connecting to the bus") == 0 { try filtered.advance(bus) }
            }
            var name: UnsafePointer<CChar>?
            try check(sd_bus_get_unique_name(bus, &name), "connecting to the bus")
            return name.map { String(cString: $0) }
        }
    }

    private func closingOnFailure<T>(_ body: () throws(BusError) -> T) throws(BusError) -> T {
        do throws(BusError) { return try body() } catch {
            sd_bus_close_unref(bus)
            throw error
        }
    }
}
