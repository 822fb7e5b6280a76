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

    /// Adds a class for the style sheet.
    package func addStyle(_ name: String) { gtk_widget_add_css_class(self.as(GtkWidget.self), name) }

    /// Removes a class for the style sheet.
    package func removeStyle(_ name: String) { gtk_widget_remove_css_class(self.as(GtkWidget.self), name) }

    /// Takes the keyboard focus.
    ///
    /// - Returns: whether it did.
    @discardableResult
    package func focus() -> Bool { gtk_widget_grab_focus(self.as(GtkWidget.self)) != 0 }

    /// The type that the widget must have in a `.ui` file.
    class var type: GType { gtk_widget_get_type() }

    package required init(checked pointer: UnsafeMutableRawPointer) { super.init(pointer) }
}
