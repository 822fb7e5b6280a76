// SPDX-License-Identifier: Apache-2.0

/// The address of a bus. Set-user-ID programs ignore the environment.
public enum BusAddress: Sendable, Equatable {
    /// The system bus: `DBUS_SYSTEM_BUS_ADDRESS`, or the well-known socket.
    case system
    /// The user's session bus: `DBUS_SESSION_BUS_ADDRESS`, or the socket in `XDG_RUNTIME_DIR`.
    case session
    /// A server address of the D-Bus Specification, such as `unix:path=/run/bus`.
    case address(String)

    /// Makes the address of the bus that a word names: `system`, `session` or a server address.
    public init(_ word: String) {
        self =
            switch word {
            case "system": .system
            case "session": .session
            default: .address(word)
            }
    }

    /// Whether a word can name a bus.
    public static func isNamed(by word: String) -> Bool { ["system", "session"].contains(word) || word.contains(":") }

    /// Returns the address for libsystemd.
    ///
    /// - Throws: ``BusError`` if the environment doesn't say where the session bus is.
    func resolved() throws(BusError) -> String {
        switch self {
        case .system:
            return TrustedEnvironment["DBUS_SYSTEM_BUS_ADDRESS"] ?? "unix:path=/run/dbus/system_bus_socket"
        case .session:
            if let address = TrustedEnvironment["DBUS_SESSION_BUS_ADDRESS"] { return address }
            guard let directory = TrustedEnvironment["XDG_RUNTIME_DIR"] else {
                throw .disconnected(
                    TrustedEnvironment.isTrusted
                        ? "Neither DBUS_SESSION_BUS_ADDRESS nor XDG_RUNTIME_DIR is set."
                        : "The program has more rights than its caller, so the environment can't name its bus.")
            }
            return "unix:path=\(escaped(directory))/bus"
        case .address(let address):
            return address
        }
    }

    private func escaped(_ path: String) -> String {
        path.utf8.map { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "/"),
                UInt8(ascii: "."), UInt8(ascii: "*"):
                return String(UnicodeScalar(byte))
            default:
                return (byte < 16 ? "%0" : "%") + String(byte, radix: 16)
            }
        }.joined()
    }
}
