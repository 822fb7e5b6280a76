// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc
internal import PlainText

/// An error as it is sent over the bus: a name for programs, and a sentence for users.
///
/// The corresponding C type is ``sd_bus_error``.
public struct BusError: Error, Equatable, CustomStringConvertible {
    /// A D-Bus error name, such as `org.freedesktop.DBus.Error.Failed`.
    public var name: String
    /// What happened, in words. It must not reveal what another user may not know.
    public var message: String

    /// Makes an error with any name.
    public init(name: String, message: String) {
        self.name = name
        self.message = message
    }

    /// The message, and the name in parentheses.
    public var description: String {
        "\(message) (\(name))"
    }
}

/// The standard names (D-Bus Specification; sd-bus-protocol.h).
extension BusError {
    /// `org.freedesktop.DBus.Error.InvalidArgs`.
    public static func invalidArguments(_ message: String) -> BusError { standard("InvalidArgs", message) }
    /// `org.freedesktop.DBus.Error.AccessDenied`.
    public static func accessDenied(_ message: String) -> BusError { standard("AccessDenied", message) }
    /// `org.freedesktop.DBus.Error.AccessDenied`, without a reason.
    public static var accessDenied: BusError { accessDenied("Access denied.") }
    /// `org.freedesktop.DBus.Error.UnknownObject`.
    public static func unknownObject(_ path: String) -> BusError {
        standard("UnknownObject", "There is no object \(path).")
    }
    /// `org.freedesktop.DBus.Error.UnknownObject`, without the path.
    public static var unknownObject: BusError { standard("UnknownObject", "No such object.") }
    /// `org.freedesktop.DBus.Error.UnknownMethod`.
    public static func unknownMethod(_ message: String) -> BusError { standard("UnknownMethod", message) }
    static func unknownInterface(_ name: String) -> BusError {
        standard("UnknownInterface", "There is no interface \(name).")
    }
    static func unknownProperty(_ name: String) -> BusError {
        standard("UnknownProperty", "There is no property \(name).")
    }
    /// `org.freedesktop.DBus.Error.NotSupported`.
    public static func notSupported(_ message: String) -> BusError { standard("NotSupported", message) }
    /// `org.freedesktop.DBus.Error.LimitsExceeded`.
    public static func limitsExceeded(_ message: String) -> BusError { standard("LimitsExceeded", message) }
    /// `org.freedesktop.DBus.Error.Failed`.
    public static func failed(_ message: String) -> BusError { standard("Failed", message) }
    /// `org.freedesktop.DBus.Error.NoReply`.
    public static func noReply(_ message: String) -> BusError { standard("NoReply", message) }
    /// `org.freedesktop.DBus.Error.Disconnected`.
    public static func disconnected(_ message: String) -> BusError { standard("Disconnected", message) }
    /// `org.freedesktop.DBus.Error.AddressInUse`: a bus name that another connection owns.
    public static func nameTaken(_ message: String) -> BusError { standard("AddressInUse", message) }

    /// `org.freedesktop.DBus.Error.NameHasNoOwner`.
    static let nameHasNoOwner = "org.freedesktop.DBus.Error.NameHasNoOwner"

    private static func standard(_ name: String, _ message: String) -> BusError {
        BusError(name: "org.freedesktop.DBus.Error.\(name)", message: message)
    }
}

extension BusError {
    /// Translates an errno of either sign.
    ///
    /// For a message that isn't what its reader expects, it is InvalidArgs. The corresponding C function for all others
    /// is ``sd_bus_error_set_errno``.
    init(errno code: Int32, _ what: String = "") {
        var error = sd_bus_error()
        defer { sd_bus_error_free(&error) }
        sd_bus_error_set_errno(&error, abs(code))
        let cause = error.message.map { String(cString: $0) } ?? "error \(abs(code))"
        let message = what.isEmpty ? "\(cause)." : "The library sd-bus failed at \(what): \(cause)."
        switch abs(code) {
        case EINVAL, ENXIO, EBADMSG: self = .invalidArguments(message)
        default: self.init(name: error.name.map { String(cString: $0) } ?? "", message: message)
        }
    }

    /// Copies what libsystemd reports.
    init(_ error: sd_bus_error) {
        name = error.name.map { String(cString: $0) } ?? ""
        message = error.message.map { String(cString: $0) } ?? ""
    }

    /// Translates any error for the bus: one that isn't a `BusError` becomes Failed.
    init(_ error: any Error) {
        self = error as? BusError ?? .failed("\(error)")
    }

    /// The message as it leaves the process. It is cleaned, because parts of it may come from anywhere.
    var text: String { message.cleaned(atMost: 2048) }

    /// Passes the error to libsystemd, which answers with it.
    ///
    /// - Returns: the value for the callback to return.
    func set(_ error: UnsafeMutablePointer<sd_bus_error>?) -> Int32 {
        min(-1, sd_bus_error_set(error, name, text))
    }
}

/// Throws an error that says what was being done, if a result of libsystemd is negative.
@inline(__always)
@discardableResult
func check(_ result: Int32, _ what: StaticString) throws(BusError) -> Int32 {
    if result < 0 { throw failure(result, what) }
    return result
}

/// A function of its own, so that the check is small where it is inlined.
@inline(never)
private func failure(_ result: Int32, _ what: StaticString) -> BusError {
    BusError(errno: result, what.description)
}
