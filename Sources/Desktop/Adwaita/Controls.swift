// SPDX-License-Identifier: Apache-2.0

internal import CAdwaita
internal import GLibLoop

/// A button: `GtkButton`.
package final class Button: Widget {
    override class var type: GType { gtk_button_get_type() }

    /// Calls a handler when the button is pressed.
    package func onPress(_ handler: @escaping @MainActor () -> Void) { connect("clicked", handler) }

    /// Makes a button with a text.
    ///
    /// - Parameter label: the text, with an underscore before its mnemonic letter.
    package convenience init(_ label: String) {
        guard let button = gtk_button_new_with_mnemonic(label) else { preconditionFailure("GTK gives no button") }
        self.init(checked: UnsafeMutableRawPointer(button))
        gtk_widget_set_valign(self.as(GtkWidget.self), GTK_ALIGN_CENTER)
    }

    /// The button's text, with an underscore before its mnemonic letter.
    package var label: String {
        get { gtk_button_get_label(self.as(GtkButton.self)).map { String(cString: $0) } ?? "" }
        set { gtk_button_set_label(self.as(GtkButton.self), newValue) }
    }
}

/// A switch: `GtkSwitch`.
package final class Switch: Widget {
    override class var type: GType { gtk_switch_get_type() }

    /// Whether the switch is on.
    package var isOn: Bool {
        get { gtk_switch_get_active(opaque) != 0 }
        set { gtk_switch_set_active(opaque, newValue ? 1 : 0) }
    }

    /// Calls a handler when the switch changes, by the user or by ``isOn``.
    package func onSwitch(_ handler: @escaping @MainActor () -> Void) { connect("notify::active", handler) }
}

/// A field for a text to search for: `GtkSearchEntry`.
package final class SearchEntry: Widget {
    override class var type: GType { gtk_search_entry_get_type() }

    /// The text.
    package var text: String { gtk_editable_get_text(opaque).map { String(cString: $0) } ?? "" }

    /// Calls a handler shortly after the text has changed. The Escape key clears the text.
    package func onSearch(_ handler: @escaping @MainActor () -> Void) {
        connect("search-changed", handler)
        connect("stop-search") { [unowned self] in gtk_editable_set_text(opaque, "") }
    }
}

/// A bar that shows a share: `GtkLevelBar`.
package final class LevelBar: Widget {
    override class var type: GType { gtk_level_bar_get_type() }

    /// The share, from 0 to 1.
    package var share: Double {
        get { gtk_level_bar_get_value(opaque) }
        set { gtk_level_bar_set_value(opaque, newValue) }
    }

    /// Whether the bar has the color of warnings.
    package var isWarning = false {
        didSet { if isWarning { addStyle("warning-bar") } else { removeStyle("warning-bar") } }
    }

    // libadwaita's style for filled levels overrides its style for low ones.
    private static let styles: Void = StyleSheet.add(
        "levelbar.warning-bar > trough > block.filled { background-color: @warning_bg_color; }")

    package required init(checked pointer: UnsafeMutableRawPointer) {
        super.init(checked: pointer)
        Self.styles
        for name in ["low", "high", "full"] { gtk_level_bar_remove_offset_value(opaque, name) }
    }
}

/// A spinner that turns while something is under way: `GtkSpinner`.
package final class Spinner: Widget {
    override class var type: GType { gtk_spinner_get_type() }

    /// Whether the spinner turns. It is visible only then.
    package var isSpinning: Bool {
        get { gtk_spinner_get_spinning(opaque) != 0 }
        set {
            gtk_spinner_set_spinning(opaque, newValue ? 1 : 0)
            isVisible = newValue
        }
    }
}

/// An icon: `GtkImage`.
package final class Image: Widget {
    override class var type: GType { gtk_image_get_type() }

    /// Makes an image of an icon, by its name in the icon theme.
    package convenience init(icon: String) {
        guard let image = gtk_image_new_from_icon_name(icon) else { preconditionFailure("GTK gives no image") }
        self.init(checked: UnsafeMutableRawPointer(image))
    }

    /// The icon's name in the icon theme.
    package var icon: String {
        get { gtk_image_get_icon_name(opaque).map { String(cString: $0) } ?? "" }
        set { gtk_image_set_from_icon_name(opaque, newValue) }
    }
}

/// A text: `GtkLabel`.
package final class Label: Widget {
    override class var type: GType { gtk_label_get_type() }

    /// The text, which isn't markup.
    package var text: String {
        get { String(cString: gtk_label_get_text(opaque)) }
        set { gtk_label_set_text(opaque, newValue) }
    }
}

/// Lines of as many widgets as fit: `GtkFlowBox`.
package final class FlowBox: Widget {
    override class var type: GType { gtk_flow_box_get_type() }

    /// Adds a widget at the end.
    package func add(_ widget: Widget) { gtk_flow_box_append(opaque, widget.as(GtkWidget.self)) }
}

/// A title in a header bar: `AdwWindowTitle`.
package final class WindowTitle: Widget {
    override class var type: GType { adw_window_title_get_type() }

    /// The title. It is text, not markup.
    package var title: String {
        get { String(cString: adw_window_title_get_title(opaque)) }
        set { adw_window_title_set_title(opaque, newValue) }
    }
}
