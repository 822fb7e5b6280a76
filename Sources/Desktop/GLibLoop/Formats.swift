// SPDX-License-Identifier: Apache-2.0

internal import CGio

/// A date and time of day as the user's locale writes them; `nil` for a time that no calendar has.
///
/// - Parameter microseconds: since 1970-01-01T00:00:00Z.
public func dateText(_ microseconds: UInt64) -> String? {
    guard let time = g_date_time_new_from_unix_local(gint64(clamping: microseconds / 1_000_000)) else { return nil }
    defer { g_date_time_unref(time) }
    // Day, month by its short name, year; hours and minutes.
    guard let text = g_date_time_format(time, "%-d %b %Y, %H:%M") else { return nil }
    defer { g_free(text) }
    return String(cString: text)
}

/// A number of bytes with a binary unit, as the user's locale writes it.
public func sizeText(_ bytes: Int) -> String {
    guard let text = g_format_size_full(guint64(clamping: bytes), G_FORMAT_SIZE_IEC_UNITS) else { return "\(bytes)" }
    defer { g_free(text) }
    return String(cString: text)
}

/// The time now, in microseconds since 1970-01-01T00:00:00Z.
public func microsecondsNow() -> UInt64 { UInt64(clamping: g_get_real_time()) }

/// What an environment variable says; `nil` where it is not set or empty.
public func environmentVariable(_ name: String) -> String? {
    g_getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
}

/// The bytes of a regular file; `nil` if it can't be read or is larger than `limit`.
public func smallFile(_ path: String, limit: Int) -> [UInt8]? {
    let file = g_file_new_for_path(path)
    defer { g_object_unref(file.map(UnsafeMutableRawPointer.init)) }
    let attributes = "standard::type,standard::size"
    guard let info = g_file_query_info(file, attributes, G_FILE_QUERY_INFO_NONE, nil, nil) else { return nil }
    defer { g_object_unref(UnsafeMutableRawPointer(info)) }
    // A pipe or device would make us wait, or never end.
    guard g_file_info_get_file_type(info) == G_FILE_TYPE_REGULAR, g_file_info_get_size(info) <= gint64(limit) else {
        return nil
    }
    var contents: UnsafeMutablePointer<CChar>?
    var length: gsize = 0
    guard g_file_load_contents(file, nil, &contents, &length, nil, nil) != 0, let contents else { return nil }
    defer { g_free(contents) }
    return length <= limit ? Array(UnsafeRawBufferPointer(start: contents, count: Int(length))) : nil
}
