// SPDX-License-Identifier: Apache-2.0

internal import CGio

/// Returns a date and time of day as the user's language writes them; `nil` for a time outside of the calendar.
///
/// - Parameter microseconds: since 1970-01-01T00:00:00Z.
package func dateText(_ microseconds: UInt64) -> String? {
    // Day, month, year; hours and minutes.
    formatted(microseconds, tr("%-d %B %Y, %H:%M"))
}

/// Returns a date as the user's language writes it; `nil` for a time outside of the calendar.
///
/// - Parameter microseconds: since 1970-01-01T00:00:00Z.
package func dayText(_ microseconds: UInt64) -> String? {
    formatted(microseconds, tr("%-d %B %Y"))
}

/// Returns a date and time of day for problem reports, the same in all languages; `nil` for a time outside of the
/// calendar.
///
/// - Parameter microseconds: since 1970-01-01T00:00:00Z.
package func logTime(_ microseconds: UInt64) -> String? { formatted(microseconds, "%F %T %:z") }

private func formatted(_ microseconds: UInt64, _ format: String) -> String? {
    guard let time = g_date_time_new_from_unix_local(gint64(clamping: microseconds / 1_000_000)) else { return nil }
    defer { g_date_time_unref(time) }
    guard let text = g_date_time_format(time, format) else { return nil }
    defer { g_free(text) }
    return String(cString: text)
}

/// Returns a number of bytes with a binary unit, as the user's locale writes it.
package func sizeText(_ bytes: Int) -> String {
    guard let text = g_format_size_full(guint64(clamping: bytes), G_FORMAT_SIZE_IEC_UNITS) else { return "\(bytes)" }
    defer { g_free(text) }
    return String(cString: text)
}

/// Returns bytes by which texts can be compared as the user's language sorts them, with numbers in them by their values.
package func sortingKey(_ text: String) -> [UInt8] {
    guard let key = g_utf8_collate_key_for_filename(text.lowercased(), -1) else { return Array(text.utf8) }
    defer { g_free(key) }
    return UnsafeBufferPointer(start: key, count: strlen(key)).map { UInt8(bitPattern: $0) }
}

/// Returns the present time, in microseconds since 1970-01-01T00:00:00Z.
package func microsecondsNow() -> UInt64 { UInt64(clamping: g_get_real_time()) }

/// Returns the value of an environment variable; `nil` if it is unset or empty.
package func environmentVariable(_ name: String) -> String? {
    g_getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
}

/// Returns the bytes of a regular file; `nil` if it can't be read or is larger than `limit` bytes.
package func smallFile(_ path: String, limit: Int) -> [UInt8]? {
    let file = g_file_new_for_path(path)
    defer { g_object_unref(file.map(UnsafeMutableRawPointer.init)) }
    let attributes = "standard::type,standard::size"
    guard let info = g_file_query_info(file, attributes, G_FILE_QUERY_INFO_NONE, nil, nil) else { return nil }
    defer { g_object_unref(UnsafeMutableRawPointer(info)) }
    // Reading a pipe or a device could block or never end.
    guard g_file_info_get_file_type(info) == G_FILE_TYPE_REGULAR, g_file_info_get_size(info) <= gint64(limit) else {
        return nil
    }
    var contents: UnsafeMutablePointer<CChar>?
    var length: gsize = 0
    guard g_file_load_contents(file, nil, &contents, &length, nil, nil) != 0, let contents else { return nil }
    defer { g_free(contents) }
    return length <= limit ? Array(UnsafeRawBufferPointer(start: contents, count: Int(length))) : nil
}
