// SPDX-License-Identifier: Apache-2.0

internal import CAdwaita
public import GLibLoop

/// Something on the screen: `GtkWidget`.
@MainActor
public class Widget: Object {
    /// Whether it takes input; otherwise it is greyed out.
    public var isSensitive: Bool {
        get { gtk_widget_get_sensitive(self.as(GtkWidget.self)) != 0 }
        set { gtk_widget_set_sensitive(self.as(GtkWidget.self), newValue ? 1 : 0) }
    }

    /// Whether it is shown.
    public var isVisible: Bool {
        get { gtk_widget_get_visible(self.as(GtkWidget.self)) != 0 }
        set { gtk_widget_set_visible(self.as(GtkWidget.self), newValue ? 1 : 0) }
    }

    /// Adds a class for the style sheet.
    public func addStyle(_ name: String) { gtk_widget_add_css_class(self.as(GtkWidget.self), name) }

    /// Removes a class for the style sheet.
    public func removeStyle(_ name: String) { gtk_widget_remove_css_class(self.as(GtkWidget.self), name) }

    /// The type that a widget in a `.ui` file has to have.
    class var type: GType { gtk_widget_get_type() }

    package required init(checked pointer: UnsafeMutableRawPointer) { super.init(pointer) }
}

/// A window of an application: `AdwApplicationWindow`.
public final class Window: Widget {
    override class var type: GType { adw_application_window_get_type() }

    /// Shows it, or brings it to the front.
    public func present() { gtk_window_present(self.as(GtkWindow.self)) }

    /// Has it be of an application, which ends with its last window.
    public func join(_ application: Application) {
        gtk_window_set_application(self.as(GtkWindow.self), application.as(GtkApplication.self))
    }

    /// Asks it to close.
    public func close() { gtk_window_close(self.as(GtkWindow.self)) }

    /// Whether it has the keyboard.
    public var isActive: Bool { gtk_window_is_active(self.as(GtkWindow.self)) != 0 }

    /// Calls a handler when it gets or loses the keyboard.
    public func onActiveChange(_ handler: @escaping @MainActor () -> Void) { connect("notify::is-active", handler) }
}

/// A row with a title and a subtitle: `AdwActionRow`.
public class ActionRow: Widget {
    override class var type: GType { adw_action_row_get_type() }

    /// The line below the title. It is text, not markup.
    public var subtitle: String {
        get { adw_action_row_get_subtitle(self.as(AdwActionRow.self)).map { String(cString: $0) } ?? "" }
        set { adw_action_row_set_subtitle(self.as(AdwActionRow.self), newValue) }
    }

    /// The first line. It is text, not markup.
    public var title: String {
        get { String(cString: adw_preferences_row_get_title(self.as(AdwPreferencesRow.self))) }
        set { adw_preferences_row_set_title(self.as(AdwPreferencesRow.self), newValue) }
    }

    package required init(checked pointer: UnsafeMutableRawPointer) {
        super.init(checked: pointer)
        adw_preferences_row_set_use_markup(self.as(AdwPreferencesRow.self), 0)
    }
}

/// A row that chooses one of a list: `AdwComboRow`.
public final class ComboRow: ActionRow {
    override class var type: GType { adw_combo_row_get_type() }

    /// The place of what is chosen, from 0; `nil`: nothing is.
    public var selection: Int? {
        get {
            let selected = adw_combo_row_get_selected(self.as(AdwComboRow.self))
            return selected == UInt32.max ? nil : Int(selected)
        }
        set { adw_combo_row_set_selected(self.as(AdwComboRow.self), newValue.map(UInt32.init) ?? .max) }
    }

    /// Offers these texts, in their order.
    public func offer(_ choices: [String]) {
        let list = gtk_string_list_new(nil)
        for choice in choices { gtk_string_list_append(list, choice) }
        adw_combo_row_set_model(self.as(AdwComboRow.self), list)
        g_object_unref(list.map(UnsafeMutableRawPointer.init))
    }

    /// Calls a handler when another one is chosen, by the user or by ``selection``.
    public func onSelection(_ handler: @escaping @MainActor () -> Void) { connect("notify::selected", handler) }
}

/// A button: `GtkButton`.
public final class Button: Widget {
    override class var type: GType { gtk_button_get_type() }

    /// Calls a handler when it is pressed.
    public func onPress(_ handler: @escaping @MainActor () -> Void) { connect("clicked", handler) }
}
