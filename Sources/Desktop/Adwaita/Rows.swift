// SPDX-License-Identifier: Apache-2.0

internal import CAdwaita
internal import GLibLoop

/// A row with a title and a subtitle: `AdwActionRow`.
package class ActionRow: Widget {
    override class var type: GType { adw_action_row_get_type() }

    /// The line below the title. It is text, not markup.
    package var subtitle: String {
        get { adw_action_row_get_subtitle(self.as(AdwActionRow.self)).map { String(cString: $0) } ?? "" }
        set { adw_action_row_set_subtitle(self.as(AdwActionRow.self), newValue) }
    }

    /// The first line. It is text, not markup.
    package var title: String {
        get { String(cString: adw_preferences_row_get_title(self.as(AdwPreferencesRow.self))) }
        set { adw_preferences_row_set_title(self.as(AdwPreferencesRow.self), newValue) }
    }

    /// Makes a row that is not in a group yet.
    package convenience init(title: String, subtitle: String = "") {
        guard let row = adw_action_row_new() else { preconditionFailure("libadwaita gives no row") }
        self.init(checked: UnsafeMutableRawPointer(row))
        self.title = title
        self.subtitle = subtitle
    }

    /// Adds a widget before the title.
    package func addPrefix(_ widget: Widget) {
        adw_action_row_add_prefix(self.as(AdwActionRow.self), widget.as(GtkWidget.self))
    }

    /// Adds a widget at the end.
    package func addSuffix(_ widget: Widget) {
        adw_action_row_add_suffix(self.as(AdwActionRow.self), widget.as(GtkWidget.self))
    }

    /// Calls a handler when the row is chosen, by pointer or keyboard.
    package func onActivate(_ handler: @escaping @MainActor () -> Void) {
        gtk_list_box_row_set_activatable(self.as(GtkListBoxRow.self), 1)
        connect("activated", handler)
    }

    package required init(checked pointer: UnsafeMutableRawPointer) {
        super.init(checked: pointer)
        adw_preferences_row_set_use_markup(self.as(AdwPreferencesRow.self), 0)
    }
}

/// A row for choosing from a list: `AdwComboRow`.
package final class ComboRow: ActionRow {
    override class var type: GType { adw_combo_row_get_type() }

    /// The index of the choice, from 0; `nil` if nothing is chosen.
    package var selection: Int? {
        get {
            let selected = adw_combo_row_get_selected(self.as(AdwComboRow.self))
            return selected == UInt32.max ? nil : Int(selected)
        }
        set { adw_combo_row_set_selected(self.as(AdwComboRow.self), newValue.map(UInt32.init) ?? .max) }
    }

    /// Offers these texts, in this order.
    package func offer(_ choices: [String]) {
        let list = gtk_string_list_new(nil)
        for choice in choices { gtk_string_list_append(list, choice) }
        adw_combo_row_set_model(self.as(AdwComboRow.self), list)
        g_object_unref(list.map(UnsafeMutableRawPointer.init))
    }

    /// Calls a handler when the choice changes, by the user or by ``selection``.
    package func onSelection(_ handler: @escaping @MainActor () -> Void) { connect("notify::selected", handler) }
}

/// A row with nested rows, which can be hidden: `AdwExpanderRow`.
package final class ExpanderRow: Widget {
    override class var type: GType { adw_expander_row_get_type() }

    /// The first line. It is text, not markup.
    package var title: String {
        get { String(cString: adw_preferences_row_get_title(self.as(AdwPreferencesRow.self))) }
        set { adw_preferences_row_set_title(self.as(AdwPreferencesRow.self), newValue) }
    }

    /// The line below the title. It is text, not markup.
    package var subtitle: String {
        get { String(cString: adw_expander_row_get_subtitle(self.as(AdwExpanderRow.self))) }
        set { adw_expander_row_set_subtitle(self.as(AdwExpanderRow.self), newValue) }
    }

    /// Whether the nested rows are shown.
    package var isExpanded: Bool {
        get { adw_expander_row_get_expanded(self.as(AdwExpanderRow.self)) != 0 }
        set { adw_expander_row_set_expanded(self.as(AdwExpanderRow.self), newValue ? 1 : 0) }
    }

    /// Whether the row has an arrow and can be expanded.
    package var canExpand: Bool {
        get { adw_expander_row_get_enable_expansion(self.as(AdwExpanderRow.self)) != 0 }
        set { adw_expander_row_set_enable_expansion(self.as(AdwExpanderRow.self), newValue ? 1 : 0) }
    }

    /// Calls a handler when the nested rows are shown or hidden.
    package func onExpansion(_ handler: @escaping @MainActor () -> Void) { connect("notify::expanded", handler) }

    /// Adds a nested row.
    package func add(_ row: Widget) { adw_expander_row_add_row(self.as(AdwExpanderRow.self), row.as(GtkWidget.self)) }

    /// Removes a nested row.
    package func remove(_ row: Widget) { adw_expander_row_remove(self.as(AdwExpanderRow.self), row.as(GtkWidget.self)) }

    package required init(checked pointer: UnsafeMutableRawPointer) {
        super.init(checked: pointer)
        adw_preferences_row_set_use_markup(self.as(AdwPreferencesRow.self), 0)
    }
}

/// A group of rows: `AdwPreferencesGroup`.
package final class PreferencesGroup: Widget {
    override class var type: GType { adw_preferences_group_get_type() }

    /// The text above the rows, which isn't markup.
    package var explanation = "" {
        didSet {
            // The description of an `AdwPreferencesGroup` is markup.
            guard explanation != oldValue, let markup = g_markup_escape_text(explanation, -1) else { return }
            defer { g_free(markup) }
            adw_preferences_group_set_description(self.as(AdwPreferencesGroup.self), markup)
        }
    }

    /// Adds a row at the end.
    package func add(_ row: Widget) {
        adw_preferences_group_add(self.as(AdwPreferencesGroup.self), row.as(GtkWidget.self))
    }

    /// Removes a row.
    package func remove(_ row: Widget) {
        adw_preferences_group_remove(self.as(AdwPreferencesGroup.self), row.as(GtkWidget.self))
    }

    /// Puts all of the group's rows into an order. Unlike rows that are removed and added, they keep the keyboard focus.
    package func order(_ rows: [Widget]) {
        let places = Places(rows)
        guard let row = rows.first?.as(GtkWidget.self), let list = gtk_widget_get_ancestor(row, gtk_list_box_get_type())
        else { return }
        withExtendedLifetime(places) {
            gtk_list_box_set_sort_func(
                OpaquePointer(list),
                { first, second, places in
                    guard let first, let second, let places else { return 0 }
                    return Unmanaged<Places>.fromOpaque(places).takeUnretainedValue().compare(first, second)
                }, Unmanaged.passUnretained(places).toOpaque(), nil)
            gtk_list_box_set_sort_func(OpaquePointer(list), nil, nil, nil)
        }
    }

    /// The places of rows in a list.
    private final class Places {
        private let places: [UnsafeMutableRawPointer: Int32]

        @MainActor init(_ rows: [Widget]) {
            places = Dictionary(uniqueKeysWithValues: zip(rows.map(\.pointer), 0...))
        }

        func compare(_ first: UnsafeMutableRawPointer, _ second: UnsafeMutableRawPointer) -> Int32 {
            (places[first] ?? 0) - (places[second] ?? 0)
        }
    }
}
