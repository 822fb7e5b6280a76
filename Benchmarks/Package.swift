// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0

import PackageDescription

let settings: [CSetting] = [
    .define("_GNU_SOURCE"),
    .unsafeFlags(["-Wall", "-Wextra"]),
]

/// A program in C that uses a bus. It is in C because measuring must cost nothing.
func program(_ name: String) -> Target {
    .executableTarget(name: name, dependencies: ["Fixture", "Libsystemd"], cSettings: settings)
}

let package = Package(
    name: "Benchmarks",
    dependencies: [.package(name: "ubiquitous-store", path: "..")],
    targets: [
        .systemLibrary(name: "Libsystemd", pkgConfig: "libsystemd", providers: [.apt(["libsystemd-dev"])]),

        // What services and clients agree on: names, keys, values, and how to reach a bus.
        .target(name: "Fixture", dependencies: ["Libsystemd"], cSettings: settings),

        // The least a service can do, to compare with.
        program("baseline"),

        // The clients that measure.
        program("load"),
        program("first-reply"),
        program("first-calls"),
        program("sync-delay"),
        .target(name: "Measuring"),
        .executableTarget(
            name: "library",
            dependencies: ["Measuring", .product(name: "UbiquitousStore", package: "ubiquitous-store")]),
        .executableTarget(
            name: "settings",
            dependencies: ["Measuring", .product(name: "UbiquitousDefaults", package: "ubiquitous-store")]),
    ],
    cLanguageStandard: .gnu17
)

// As in the package itself.
if Context.environment["UBIQUITOUS_STORE_DESKTOP"] != nil {
    package.targets += [
        .systemLibrary(name: "Libadwaita", pkgConfig: "libadwaita-1", providers: [.apt(["libadwaita-1-dev"])]),
        .systemLibrary(name: "Libxdamage", pkgConfig: "xdamage", providers: [.apt(["libxdamage-dev"])]),
        // The least that a window can be, to compare with.
        .executableTarget(name: "empty-window", dependencies: ["Libadwaita"], cSettings: settings),
        .executableTarget(
            name: "window-time", dependencies: ["Fixture", "Libsystemd", "Libxdamage"], cSettings: settings,
            linkerSettings: [.linkedLibrary("X11")]),
    ]
}
