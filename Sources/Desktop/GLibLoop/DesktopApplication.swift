// SPDX-License-Identifier: Apache-2.0

internal import CGio

/// An installed application: `GDesktopAppInfo`.
@MainActor
package final class DesktopApplication: Object {
    /// Finds the application of a desktop file, such as `org.example.App.desktop`; `nil` if it is not installed.
    package init?(_ desktopFile: String) {
        guard let application = g_desktop_app_info_new(desktopFile) else { return nil }
        super.init(owned: UnsafeMutableRawPointer(application))
    }

    /// Returns the name for users of the application of a desktop file; `nil` if it is not installed.
    package nonisolated static func name(of desktopFile: String) -> String? {
        guard let application = g_desktop_app_info_new(desktopFile) else { return nil }
        defer { g_object_unref(UnsafeMutableRawPointer(application)) }
        return String(cString: g_app_info_get_display_name(application))
    }

    /// The application's name for users.
    package var name: String { String(cString: g_app_info_get_display_name(opaque)) }

    /// The name of its icon in the icon theme; `nil` if it has none there.
    package var icon: String? {
        guard let text = g_desktop_app_info_get_string(opaque, "Icon") else { return nil }
        defer { g_free(text) }
        let icon = String(cString: text)
        return icon.hasPrefix("/") ? nil : icon
    }

    /// Starts the application, or activates the one that runs. A failure is logged.
    ///
    /// - Parameter context: a `GAppLaunchContext`, which lets the application's window come to the front.
    package func launch(in context: Object? = nil) {
        var error: UnsafeMutablePointer<GError>?
        if g_app_info_launch(opaque, nil, context?.as(GAppLaunchContext.self), &error) != 0 { return }
        defer { g_clear_error(&error) }
        logWarning(error.map { String(cString: $0.pointee.message) } ?? "The application could not be started.")
    }
}

/// Writes a warning to GLib's log: the terminal or the journal.
package func logWarning(_ text: String) {
    // Swift can't call `g_warning`, which is a macro. The text is not a format.
    text.withCString { text in
        "MESSAGE".withCString { key in
            var fields = [GLogField(key: key, value: text, length: -1)]
            g_log_structured_array(G_LOG_LEVEL_WARNING, &fields, 1)
        }
    }
}
