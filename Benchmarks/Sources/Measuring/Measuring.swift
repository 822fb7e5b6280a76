// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Returns the nanoseconds per call, after a tenth as many calls that don't count.
public func time(_ calls: Int, _ read: () -> Bool) -> Double {
    for _ in 0..<calls / 10 where !read() { fail("the value isn't there") }
    let start = now()
    for _ in 0..<calls where !read() { fail("the value isn't there") }
    return Double(now() - start) / Double(calls)
}

/// The time by CLOCK_MONOTONIC, in nanoseconds.
public func now() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// Prints a sentence to standard error, and ends the program with status 1.
public func fail(_ text: String) -> Never {
    let line = Array("\(text)\n".utf8)
    _ = write(STDERR_FILENO, line, line.count)
    exit(1)
}

/// GSettings by pointers to its functions, so that no build needs its headers.
public struct GSettings {
    private typealias New = @convention(c) (UnsafePointer<CChar>) -> OpaquePointer?
    private typealias GetInt = @convention(c) (OpaquePointer, UnsafePointer<CChar>) -> Int32
    private typealias SetInt = @convention(c) (OpaquePointer, UnsafePointer<CChar>, Int32) -> Int32

    private let settings: OpaquePointer
    private let getInt: GetInt
    private let setInt: SetInt
    private let key: UnsafeMutablePointer<CChar>

    /// Opens the benchmarks' schema with the keyfile backend, which also keeps values in memory; `nil` without libgio.
    public init?(_ schemas: String, _ configuration: String) {
        setenv("GSETTINGS_SCHEMA_DIR", schemas, 1)
        setenv("XDG_CONFIG_HOME", configuration, 1)
        setenv("GSETTINGS_BACKEND", "keyfile", 1)
        guard let library = dlopen("libgio-2.0.so.0", RTLD_NOW), let new = dlsym(library, "g_settings_new"),
            let get = dlsym(library, "g_settings_get_int"), let set = dlsym(library, "g_settings_set_int"),
            let key = strdup("number"),
            let settings = unsafeBitCast(new, to: New.self)("com.example.benchmarks")
        else { return nil }
        self.settings = settings
        self.key = key
        getInt = unsafeBitCast(get, to: GetInt.self)
        setInt = unsafeBitCast(set, to: SetInt.self)
    }

    /// The integer key `number`, called as from C.
    public var number: Int32 { getInt(settings, key) }

    /// Sets the key. Returns whether that succeeded.
    public func set(_ number: Int32) -> Bool { setInt(settings, key, number) != 0 }
}
