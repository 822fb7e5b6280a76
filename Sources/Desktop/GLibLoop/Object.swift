// SPDX-License-Identifier: Apache-2.0

internal import CGio

/// A GObject, with one reference to it.
@MainActor
open class Object {
    /// The object, for the layer that wraps its type.
    package let pointer: UnsafeMutableRawPointer

    /// Takes a reference to an object that has another owner, or none yet.
    package init(_ pointer: UnsafeMutableRawPointer) {
        self.pointer = pointer
        g_object_ref_sink(pointer)
    }

    /// Takes over the reference that a constructor returned.
    package init(owned pointer: UnsafeMutableRawPointer) {
        self.pointer = pointer
        if g_object_is_floating(pointer) != 0 { g_object_ref_sink(pointer) }
    }

    isolated deinit {
        g_object_unref(pointer)
    }

    /// Returns the object as a type that C declares.
    package func `as`<Instance>(_ type: Instance.Type) -> UnsafeMutablePointer<Instance> {
        pointer.assumingMemoryBound(to: type)
    }

    /// The object as a type that C does not declare.
    package var opaque: OpaquePointer { OpaquePointer(pointer) }

    /// Calls a handler whenever the object emits a signal, for as long as the object lives. If the signal asks whether
    /// it was handled, the answer is no.
    ///
    /// The signal's arguments are ignored: a handler asks the object for its state. See `g_signal_connect_data`.
    package func connect(_ signal: String, _ handler: @escaping @MainActor () -> Void) {
        let callback: @convention(c) (UnsafeMutableRawPointer) -> gboolean = { data in
            nonisolated(unsafe) let data = data
            // Safe because the object emits its signals on the main thread, and the connection keeps the handler.
            MainActor.assumeIsolated { Unmanaged<Handler<Void>>.fromOpaque(data).takeUnretainedValue().body(()) }
            return 0
        }
        connect(signal, unsafeBitCast(callback, to: GCallback.self), Handler<Void>(handler))
    }

    /// Calls a handler with the text that a signal has as its argument.
    package func connect(_ signal: String, text handler: @escaping @MainActor (String) -> Void) {
        let callback: @convention(c) (UnsafeMutableRawPointer, UnsafePointer<CChar>) -> Void = { data, text in
            nonisolated(unsafe) let data = data
            // Safe because the object emits its signals on the main thread, and the connection keeps the handler.
            let text = String(cString: text)
            MainActor.assumeIsolated { Unmanaged<Handler<String>>.fromOpaque(data).takeUnretainedValue().body(text) }
        }
        connect(signal, unsafeBitCast(callback, to: GCallback.self), Handler(handler))
    }

    /// Calls a handler with the integer that a signal has as its argument.
    package func connect(_ signal: String, integer handler: @escaping @MainActor (Int32) -> Void) {
        let callback: @convention(c) (UnsafeMutableRawPointer, gint) -> Void = { data, number in
            nonisolated(unsafe) let data = data
            // Safe because the object emits its signals on the main thread, and the connection keeps the handler.
            MainActor.assumeIsolated { Unmanaged<Handler<Int32>>.fromOpaque(data).takeUnretainedValue().body(number) }
        }
        connect(signal, unsafeBitCast(callback, to: GCallback.self), Handler(handler))
    }

    /// Calls a C function with a handler as its first argument, which the connection keeps.
    private func connect(_ signal: String, _ callback: GCallback, _ handler: AnyObject) {
        g_signal_connect_data(
            pointer, signal, callback, Unmanaged.passRetained(handler).toOpaque(),
            { data, _ in if let data { Unmanaged<AnyObject>.fromOpaque(data).release() } }, G_CONNECT_SWAPPED)
    }
}

/// The closure data of a signal with one argument.
private final class Handler<Argument> {
    let body: @MainActor (Argument) -> Void

    init(_ body: @escaping @MainActor (Argument) -> Void) { self.body = body }
}
