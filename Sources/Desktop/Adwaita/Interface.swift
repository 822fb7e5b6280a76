// SPDX-License-Identifier: Apache-2.0

internal import CAdwaita
package import GLibLoop

/// The widgets of a `.ui` file: `GtkBuilder`.
@MainActor
package final class Interface: Object {
    /// Builds what a `.ui` file describes, with its texts in the user's language.
    ///
    /// - Parameter ui: the file's bytes. The file is part of the program, so an error in it ends the program.
    package init(_ ui: [UInt8]) {
        guard let builder = gtk_builder_new() else { preconditionFailure("GTK gives no builder") }
        super.init(owned: UnsafeMutableRawPointer(builder))
        gtk_builder_set_translation_domain(builder, "ubiquitous-store")
        var error: UnsafeMutablePointer<GError>?
        let isRead = ui.withUnsafeBytes {
            gtk_builder_add_from_string(builder, $0.bindMemory(to: CChar.self).baseAddress, $0.count, &error)
        }
        precondition(isRead != 0, error.map { String(cString: $0.pointee.message) } ?? "the interface can't be read")
    }

    /// Returns the widget with an identifier, which has to exist and to be of this type.
    package func widget<W: Widget>(_ id: String, as type: W.Type = W.self) -> W {
        guard let object = gtk_builder_get_object(opaque, id) else { preconditionFailure("no widget \(id)") }
        let pointer = UnsafeMutableRawPointer(object)
        let instance = pointer.assumingMemoryBound(to: GTypeInstance.self)
        precondition(g_type_check_instance_is_a(instance, W.type) != 0, "the widget \(id) is no \(W.self)")
        return W(checked: pointer)
    }
}
