// SPDX-License-Identifier: Apache-2.0

internal import CAdwaita
package import GLibLoop

/// Asks for a file or a folder: `GtkFileChooserNative`.
package final class FileChooser: Object {
    private static var open: FileChooser?

    /// Shows a file chooser, and calls a handler with the path if the user chooses one.
    package static func choose(
        folder isFolder: Bool, title: String, over window: Window, _ handler: @escaping @MainActor (String) -> Void
    ) {
        let action = isFolder ? GTK_FILE_CHOOSER_ACTION_SELECT_FOLDER : GTK_FILE_CHOOSER_ACTION_OPEN
        guard let native = gtk_file_chooser_native_new(title, window.as(GtkWindow.self), action, nil, nil) else {
            return
        }
        let chooser = FileChooser(owned: UnsafeMutableRawPointer(native))
        open = chooser
        chooser.connect(
            "response",
            integer: { response in
                // Also a canceled chooser has a path: of the folder that it showed.
                if response == GTK_RESPONSE_ACCEPT.rawValue, let path = open?.path { handler(path) }
                open = nil
            })
        gtk_native_dialog_set_modal(chooser.as(GtkNativeDialog.self), 1)
        gtk_native_dialog_show(chooser.as(GtkNativeDialog.self))
    }

    private var path: String? {
        guard let file = gtk_file_chooser_get_file(opaque) else { return nil }
        defer { g_object_unref(UnsafeMutableRawPointer(file)) }
        guard let path = g_file_get_path(file) else { return nil }
        defer { g_free(path) }
        return String(cString: path)
    }
}

/// The desktop's clipboard, browser and applications.
@MainActor
package enum Desktop {
    /// Puts a text into the clipboard.
    package static func copy(_ text: String) {
        guard let display = gdk_display_get_default() else { return }
        gdk_clipboard_set_text(gdk_display_get_clipboard(display), text)
    }

    /// Starts an application, or brings the one that runs to the front.
    package static func launch(_ application: DesktopApplication) {
        let context = gdk_display_get_default().flatMap { gdk_display_get_app_launch_context($0) }
        application.launch(in: context.map { Object(owned: UnsafeMutableRawPointer($0)) })
    }

    /// Opens a page in the browser.
    /// - Returns: whether there is a browser that could be started.
    package static func browse(_ address: String, from window: Window) async -> Bool {
        await withCheckedContinuation { continuation in
            let data = Unmanaged.passRetained(Answer(continuation)).toOpaque()
            gtk_show_uri_full(
                window.as(GtkWindow.self), address, UInt32(GDK_CURRENT_TIME), nil,
                { parent, result, data in
                    guard let data else { return }
                    var error: UnsafeMutablePointer<GError>?
                    let window = parent.map { UnsafeMutableRawPointer($0).assumingMemoryBound(to: GtkWindow.self) }
                    let isShown = gtk_show_uri_full_finish(window, result, &error) != 0
                    g_clear_error(&error)
                    Unmanaged<Answer>.fromOpaque(data).takeRetainedValue().continuation.resume(returning: isShown)
                }, data)
        }
    }

    private final class Answer: Sendable {
        let continuation: CheckedContinuation<Bool, Never>
        init(_ continuation: CheckedContinuation<Bool, Never>) { self.continuation = continuation }
    }
}
