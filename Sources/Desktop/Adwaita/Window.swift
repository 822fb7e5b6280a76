// SPDX-License-Identifier: Apache-2.0

internal import CAdwaita
internal import GLibLoop

/// A window: `GtkWindow`.
package class Window: Widget {
    override class var type: GType { gtk_window_get_type() }

    /// Shows the window, or brings it to the front.
    package func present() { gtk_window_present(self.as(GtkWindow.self)) }

    /// Adds the window to an application, which ends with its last window.
    package func join(_ application: Application) {
        gtk_window_set_application(self.as(GtkWindow.self), application.as(GtkApplication.self))
    }

    /// Asks the window to close.
    package func close() { gtk_window_close(self.as(GtkWindow.self)) }

    /// Whether the window has the keyboard focus.
    package var isActive: Bool { gtk_window_is_active(self.as(GtkWindow.self)) != 0 }

    /// Whether the window is minimized, as far as the window system says so.
    package var isMinimized: Bool {
        guard let surface = gtk_native_get_surface(opaque) else { return false }
        return gdk_toplevel_get_state(surface).rawValue & GDK_TOPLEVEL_STATE_MINIMIZED.rawValue != 0
    }

    /// Calls a handler when the window gets or loses the keyboard focus.
    package func onActiveChange(_ handler: @escaping @MainActor () -> Void) { connect("notify::is-active", handler) }

    /// Shows a window of keyboard shortcuts over this one.
    /// - Parameter ui: a `.ui` file, in which that window is called `shortcuts`.
    package func showShortcuts(_ ui: [UInt8]) {
        let shortcuts: Window = Interface(ui).widget("shortcuts")
        shortcuts.attach(to: self)
        shortcuts.present()
    }

    /// Keeps the window in front of another one, which takes no input meanwhile.
    package func attach(to parent: Window) {
        gtk_window_set_transient_for(self.as(GtkWindow.self), parent.as(GtkWindow.self))
        gtk_window_set_modal(self.as(GtkWindow.self), 1)
    }

    /// Calls a handler when the user or ``close()`` closes the window. This isn't the signal `destroy`, which GTK emits
    /// only after the last reference is gone: this object has one.
    package func onClose(_ handler: @escaping @MainActor () -> Void) { connect("close-request", handler) }

    /// The title, which assistive technology reads.
    package var title: String {
        get { gtk_window_get_title(self.as(GtkWindow.self)).map { String(cString: $0) } ?? "" }
        set { gtk_window_set_title(self.as(GtkWindow.self), newValue) }
    }
}

/// A window with pages of preferences: `AdwPreferencesWindow`.
package final class PreferencesWindow: Window {
    override class var type: GType { adw_preferences_window_get_type() }

    /// Shows a message for ten seconds, perhaps with a button. Adwaita's five seconds are too short for a sentence that
    /// the user has to notice first.
    package func toast(_ text: String, button: String? = nil, onPress: (@MainActor () -> Void)? = nil) {
        let toast = Object(owned: UnsafeMutableRawPointer(adw_toast_new("")))
        // The toast's own title is markup, and a single line, whose end a narrow window would cut off.
        let label = gtk_label_new(text)
        gtk_label_set_wrap(label.map(OpaquePointer.init), 1)
        // A toast of libadwaita 1.2 has the height of the text at its natural width, which wraps only at this one.
        gtk_label_set_max_width_chars(label.map(OpaquePointer.init), 36)
        gtk_widget_add_css_class(label, "heading")
        adw_toast_set_custom_title(toast.opaque, label)
        if let button, let onPress {
            adw_toast_set_button_label(toast.opaque, button)
            toast.connect("button-clicked", onPress)
        }
        adw_toast_set_timeout(toast.opaque, 10)
        // The window takes over a reference.
        g_object_ref(toast.pointer)
        adw_preferences_window_add_toast(self.as(AdwPreferencesWindow.self), toast.opaque)
    }

    /// The page over the others, until it has slid out.
    private var subpage: Widget?
    private var nextSubpage: Widget?

    /// Shows a page over the others, once the one before has slid out: libadwaita 1.2 removes what is presented earlier
    /// together with that one, and shows an empty window.
    package func present(subpage next: Widget) {
        guard subpage == nil else {
            nextSubpage = next
            return
        }
        subpage = next
        let page = next.as(GtkWidget.self)
        adw_preferences_window_present_subpage(self.as(AdwPreferencesWindow.self), page)
        next.connect("notify::parent") { [weak self] in
            // The window is still removing the page.
            if gtk_widget_get_parent(page) == nil { MainThread.task { self?.presentNextSubpage() } }
        }
    }

    private func presentNextSubpage() {
        subpage = nil
        guard let next = nextSubpage else { return }
        nextSubpage = nil
        present(subpage: next)
    }

    /// Closes the page that is over the others.
    package func closeSubpage() {
        nextSubpage = nil
        adw_preferences_window_close_subpage(self.as(AdwPreferencesWindow.self))
    }

    /// The page that is shown, by its name in the `.ui` file.
    package var page: String {
        get {
            adw_preferences_window_get_visible_page_name(self.as(AdwPreferencesWindow.self))
                .map { String(cString: $0) } ?? ""
        }
        set { adw_preferences_window_set_visible_page_name(self.as(AdwPreferencesWindow.self), newValue) }
    }
}

/// A question in front of a window: `AdwMessageDialog`.
package final class MessageDialog: Window {
    override class var type: GType { adw_message_dialog_get_type() }

    /// How an answer looks.
    package enum Appearance: Sendable { case plain, suggested, destructive }

    /// - Parameters:
    ///   - heading: text, not markup.
    ///   - body: text, not markup.
    package convenience init(over parent: Window, heading: String, body: String) {
        guard let dialog = adw_message_dialog_new(parent.as(GtkWindow.self), heading, body) else {
            preconditionFailure("libadwaita gives no dialog")
        }
        self.init(checked: UnsafeMutableRawPointer(dialog))
    }

    /// Adds an answer.
    package func offer(_ answer: String, label: String, _ appearance: Appearance = .plain) {
        let dialog = self.as(AdwMessageDialog.self)
        adw_message_dialog_add_response(dialog, answer, label)
        let style =
            switch appearance {
            case .plain: ADW_RESPONSE_DEFAULT
            case .suggested: ADW_RESPONSE_SUGGESTED
            case .destructive: ADW_RESPONSE_DESTRUCTIVE
            }
        adw_message_dialog_set_response_appearance(dialog, answer, style)
    }

    /// Sets the answers of Escape and Enter.
    package func presume(close: String, enter: String) {
        adw_message_dialog_set_close_response(self.as(AdwMessageDialog.self), close)
        adw_message_dialog_set_default_response(self.as(AdwMessageDialog.self), enter)
    }

    /// Shows the question, with the keyboard focus on the answer of Enter. libadwaita puts it on the first button, which
    /// is another one if the buttons are below each other.
    package override func present() {
        super.present()
        // Which buttons are shown, and which is the default, is known after the layout.
        gtk_widget_add_tick_callback(
            self.as(GtkWidget.self),
            { dialog, _, _ in
                let window = UnsafeMutableRawPointer(dialog)?.assumingMemoryBound(to: GtkWindow.self)
                guard let button = gtk_window_get_default_widget(window) else { return 0 }
                if gtk_widget_get_mapped(button) == 0 || gtk_widget_get_height(button) == 0 { return 1 }
                gtk_widget_grab_focus(button)
                return 0
            }, nil, nil)
    }

    /// Calls a handler with the answer.
    package func onAnswer(_ handler: @escaping @MainActor (String) -> Void) { connect("response", text: handler) }
}
