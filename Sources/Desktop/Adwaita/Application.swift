// SPDX-License-Identifier: Apache-2.0

internal import CAdwaita
package import GLibLoop
internal import Glibc

/// An application with windows: `AdwApplication`.
@MainActor
package final class Application: Object {
    /// Makes an application.
    ///
    /// - Parameters:
    ///   - id: the name that the application owns on the session bus, and that its desktop file has.
    ///   - isUnique: whether a second start activates the first and ends. If not, every start is a process of its own.
    package init(id: String, isUnique: Bool = true) {
        MainLoop.install()
        let flags = isUnique ? G_APPLICATION_DEFAULT_FLAGS : G_APPLICATION_NON_UNIQUE
        super.init(owned: UnsafeMutableRawPointer(adw_application_new(id, flags)))
    }

    /// Calls a handler when the application is to show itself.
    package func onActivate(_ handler: @escaping @MainActor () -> Void) { connect("activate", handler) }

    /// Adds an action that a keyboard shortcut or a menu's item calls by the name `app.NAME`.
    ///
    /// - Parameter shortcuts: accelerators as `gtk_accelerator_parse` reads them, such as `<Control>q`.
    package func addAction(_ name: String, shortcuts: [String] = [], _ handler: @escaping @MainActor () -> Void) {
        let action = Action(name)
        action.onActivate(handler)
        g_action_map_add_action(opaque, action.opaque)
        setShortcuts(shortcuts, of: "app.\(name)")
    }

    /// Makes shortcuts call an action, such as `window.close` of the window that has the keyboard focus.
    package func setShortcuts(_ shortcuts: [String], of action: String) {
        var accelerators: [UnsafePointer<CChar>?] = shortcuts.map { UnsafePointer(strdup($0)) } + [nil]
        gtk_application_set_accels_for_action(self.as(GtkApplication.self), action, &accelerators)
        for accelerator in accelerators { free(UnsafeMutablePointer(mutating: accelerator)) }
    }

    /// Runs until the last window is closed.
    ///
    /// - Parameter readsArguments: whether GLib parses the program's arguments. It refuses those that it doesn't know,
    ///   such as settings: `-fontSize 14`.
    /// - Returns: the exit status.
    package func run(readingArguments readsArguments: Bool = true) -> Int32 {
        g_application_run(
            self.as(GApplication.self), readsArguments ? CommandLine.argc : 0,
            readsArguments ? CommandLine.unsafeArgv : nil)
    }

    /// Ends ``run()``.
    package func quit() { g_application_quit(self.as(GApplication.self)) }
}

/// A stateless action: `GSimpleAction`.
@MainActor
private final class Action: Object {
    init(_ name: String) { super.init(owned: UnsafeMutableRawPointer(g_simple_action_new(name, nil))) }

    func onActivate(_ handler: @escaping @MainActor () -> Void) { connect("activate", handler) }
}

/// Styles for every window of the process: `GtkCssProvider`.
@MainActor
package enum StyleSheet {
    /// Adds rules of CSS, as GTK reads it.
    package static func add(_ css: String) {
        let provider = gtk_css_provider_new()
        gtk_css_provider_load_from_data(provider, css, -1)
        gtk_style_context_add_provider_for_display(
            gdk_display_get_default(), OpaquePointer(provider), UInt32(GTK_STYLE_PROVIDER_PRIORITY_APPLICATION))
        g_object_unref(provider)
    }
}
