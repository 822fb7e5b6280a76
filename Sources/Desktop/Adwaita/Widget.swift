// SPDX-License-Identifier: Apache-2.0

internal import CAdwaita
package import GLibLoop

/// A widget: `GtkWidget`.
@MainActor
package class Widget: Object {
    /// Whether the widget takes input. If not, it is greyed out.
    package var isSensitive: Bool {
        get { gtk_widget_get_sensitive(self.as(GtkWidget.self)) != 0 }
        set { gtk_widget_set_sensitive(self.as(GtkWidget.self), newValue ? 1 : 0) }
    }

    /// Whether the widget is shown.
    package var isVisible: Bool {
        get { gtk_widget_get_visible(self.as(GtkWidget.self)) != 0 }
        set { gtk_widget_set_visible(self.as(GtkWidget.self), newValue ? 1 : 0) }
    }

    /// Sets what a screen reader calls the widget.
    package func setAccessibleName(_ name: String) {
        var property = GTK_ACCESSIBLE_PROPERTY_LABEL
        var value = GValue()
        g_value_init(&value, g_type_from_name("gchararray"))
        defer { g_value_unset(&value) }
        g_value_set_string(&value, name)
        gtk_accessible_update_property_value(opaque, 1, &property, &value)
    }

    /// Adds a class for the style sheet.
    package func addStyle(_ name: String) { gtk_widget_add_css_class(self.as(GtkWidget.self), name) }

    /// Removes a class for the style sheet.
    package func removeStyle(_ name: String) { gtk_widget_remove_css_class(self.as(GtkWidget.self), name) }

    /// Takes the keyboard focus, unless the widget is on a page that isn't shown: typing there would press buttons that
    /// nobody sees.
    ///
    /// - Returns: whether it did.
    @discardableResult
    package func focus() -> Bool {
        gtk_widget_get_mapped(self.as(GtkWidget.self)) != 0 && gtk_widget_grab_focus(self.as(GtkWidget.self)) != 0
    }

    /// Takes the keyboard focus once the widget has its place, so that the page can scroll there.
    package func focusInPlace() {
        gtk_widget_add_tick_callback(
            self.as(GtkWidget.self),
            { widget, _, _ in
                if gtk_widget_get_height(widget) == 0 { return 1 }
                gtk_widget_grab_focus(widget)
                return 0
            }, nil, nil)
    }

    /// Whether the widget, or one within it, has its window's keyboard focus.
    package var hasFocus: Bool {
        guard let root = gtk_widget_get_root(self.as(GtkWidget.self)), let focus = gtk_root_get_focus(root) else {
            return false
        }
        return focus == self.as(GtkWidget.self) || gtk_widget_is_ancestor(focus, self.as(GtkWidget.self)) != 0
    }

    /// The type that the widget must have in a `.ui` file.
    class var type: GType { gtk_widget_get_type() }

    package required init(checked pointer: UnsafeMutableRawPointer) { super.init(pointer) }
}
