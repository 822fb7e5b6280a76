// SPDX-License-Identifier: Apache-2.0

internal import CAdwaita
internal import GLibLoop

/// A row for entering a text: `AdwEntryRow`.
package class EntryRow: Widget {
    override class var type: GType { adw_entry_row_get_type() }

    /// Makes a row that is not in a group yet.
    package convenience init(title: String) {
        guard let row = adw_entry_row_new() else { preconditionFailure("libadwaita gives no row") }
        self.init(checked: UnsafeMutableRawPointer(row))
        adw_preferences_row_set_title(self.as(AdwPreferencesRow.self), title)
    }

    /// The entered text.
    package var text: String {
        get { String(cString: gtk_editable_get_text(opaque)) }
        set { gtk_editable_set_text(opaque, newValue) }
    }

    /// Whether the row is marked as wrong.
    package var isWrong = false {
        didSet { if isWrong { addStyle("error") } else { removeStyle("error") } }
    }

    /// Takes the keyboard focus for a correction, and selects nothing, so that typing doesn't replace the text.
    package func focusForCorrection() {
        guard let text = gtk_editable_get_delegate(opaque) else { return }
        gtk_text_grab_focus_without_selecting(
            UnsafeMutableRawPointer(text).assumingMemoryBound(to: GtkText.self))
    }

    /// Adds a widget at the end.
    package func addSuffix(_ widget: Widget) {
        adw_entry_row_add_suffix(self.as(AdwEntryRow.self), widget.as(GtkWidget.self))
    }

    /// Calls a handler when the text changes, by the user or by ``text``.
    package func onChange(_ handler: @escaping @MainActor () -> Void) { connect("changed", handler) }

    /// Calls a handler when the user presses Enter in the row.
    package func onEnter(_ handler: @escaping @MainActor () -> Void) { connect("entry-activated", handler) }

    /// Calls a handler when the user applies the entered text.
    package func onApply(_ handler: @escaping @MainActor () -> Void) { connect("apply", handler) }
}

/// A row for entering a hidden text: `AdwPasswordEntryRow`.
package final class PasswordRow: EntryRow {
    override class var type: GType { adw_password_entry_row_get_type() }

    /// Makes a row that is not in a group yet.
    package convenience init(secret title: String) {
        guard let row = adw_password_entry_row_new() else { preconditionFailure("libadwaita gives no row") }
        self.init(checked: UnsafeMutableRawPointer(row))
        adw_preferences_row_set_title(self.as(AdwPreferencesRow.self), title)
    }
}
