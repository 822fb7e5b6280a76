// swift-tools-version: 6.2

import PackageDescription

let package = Package(
    name: "ubiquitous-store",
    products: [
        .executable(name: "ubiquitous-stored", targets: ["ubiquitous-stored"]),
        .executable(name: "ubiquitousctl", targets: ["ubiquitousctl"]),
        .library(name: "UbiquitousStore", targets: ["UbiquitousStore"]),
        .library(name: "UbiquitousDefaults", targets: ["UbiquitousDefaults"]),
        // What a backend is written against, and what tests it; neither needs a database.
        .library(name: "Replication", targets: ["Replication"]),
        .library(name: "UbiquitousStoreTesting", targets: ["UbiquitousStoreTesting"]),
        .library(name: "BackendTesting", targets: ["BackendTesting"]),
        // For this package's tests, which preload these libraries. So each has to be a file of its own.
        .library(name: "DiskJournal", type: .dynamic, targets: ["DiskJournal"]),
        .library(name: "SlowNames", type: .dynamic, targets: ["SlowNames"]),
        .library(name: "ShiftedClock", type: .dynamic, targets: ["ShiftedClock"]),
        .executable(name: "simulate", targets: ["simulate"]),
        .executable(name: "etcd-load", targets: ["etcd-load"]),
        .executable(name: "pressure", targets: ["pressure"]),
        .executable(name: "fuzz", targets: ["fuzz"]),
    ],
    traits: [
        .default(enabledTraits: ["Service"]),
        .trait(
            name: "Service",
            description: "The service, the command line and what tests backends, and the packages that these need."),
        .trait(name: "RuleSwitches", description: "Lets the simulation switch rules of sync off. Never for a service."),
    ],
    dependencies: [
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    ],
    targets: [
        // Cleans texts from others, so that they can be sent and shown.
        .target(name: "PlainText"),

        // The event loop and the bus: sd-event and sd-bus, without stores.
        .systemLibrary(
            name: "CSystemd", pkgConfig: "libsystemd", providers: [.apt(["libsystemd-dev"])]),
        .target(name: "EventLoop", dependencies: ["CSystemd"]),
        .target(name: "SDBus", dependencies: ["EventLoop", "CSystemd", "PlainText"]),

        // HTTP on the event loop: libcurl's declarations, and a client that loads libcurl when it is needed.
        .systemLibrary(name: "CCurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .target(name: "HTTPClient", dependencies: ["CCurl", "EventLoop", "RemoteAddress"]),

        // The kinds of remotes and the rules of their addresses: for the service, backends, and where users type one.
        .target(name: "RemoteAddress"),

        // XML, for the answers of WebDAV servers.
        .systemLibrary(name: "CExpat", pkgConfig: "expat", providers: [.apt(["libexpat1-dev"])]),

        // The service's messages in users' languages, for the programs that show them.
        .target(name: "ServiceMessages"),

        // Whole files, read and written.
        .target(name: "Files"),

        // Stores and their sync: no bus, no network.
        .target(name: "PropertyList"),
        .target(name: "Replication", dependencies: ["PropertyList", "PlainText"]),
        .target(name: "PropertyListFiles", dependencies: ["PropertyList"]),
        .target(
            name: "StoreEngine",
            dependencies: [
                "Replication", "PropertyList", "Files",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
            ],
            resources: [.embedInCode("Schema")]),
        // The words of recovery phrases, for the service and for programs where users type them.
        .target(name: "RecoveryWordList", resources: [.embedInCode("english.txt")]),
        // Blobs of encrypted accounts: keys, phrases, and which marker counts. No I/O.
        .target(
            name: "Sealing",
            dependencies: [
                "Replication", "RecoveryWordList", "PropertyList", .product(name: "Crypto", package: "swift-crypto"),
            ]),
        .target(name: "SyncEngine", dependencies: ["StoreEngine", "Replication", "PropertyList"]),
        // One target for each kind of remote, what several need, blobs for those that store files, and the list.
        .target(
            name: "BackendSupport",
            dependencies: [
                "Sealing", "Replication", "PropertyList", "HTTPClient", "EventLoop", "Files", "RemoteAddress",
            ],
            path: "Sources/Backends/Support"),
        .target(
            name: "Blobs",
            dependencies: [
                "BackendSupport", "Sealing", "Replication", "PropertyList",
                .product(name: "Crypto", package: "swift-crypto"),
            ],
            path: "Sources/Backends/Blobs"),
        .target(
            name: "Folder",
            dependencies: ["Blobs", "BackendSupport", "Replication", "Files", "RemoteAddress", "EventLoop"],
            path: "Sources/Backends/Folder"),
        .target(
            name: "WebDAV",
            dependencies: [
                "Blobs", "BackendSupport", "Replication", "HTTPClient", "CExpat", "RemoteAddress",
            ],
            path: "Sources/Backends/WebDAV"),
        .target(
            name: "Etcd",
            dependencies: [
                "Blobs", "BackendSupport", "Sealing", "Replication", "PropertyList", "PropertyListFiles", "HTTPClient",
                "RemoteAddress", "PlainText",
            ],
            path: "Sources/Backends/Etcd"),
        .target(
            name: "SyncBackends",
            dependencies: ["BackendSupport", "Folder", "WebDAV", "Etcd", "Replication", "RemoteAddress"]),

        // What both ends of the bus share: names, and values as variants.
        .target(name: "StoreBus", dependencies: ["SDBus", "PropertyList", "PlainText"]),

        // What an app declares. The service reads it, and so do the app's library and the command line.
        .target(name: "AppManifest", dependencies: ["PropertyListFiles", "PropertyList", "Files"]),

        // What an administrator decides about settings. The service reads it, and the command line checks it.
        .target(
            name: "ManagedDefaults", dependencies: ["AppManifest", "PropertyListFiles", "PropertyList", "PlainText"]),

        // The service, which connects stores and the bus.
        .target(
            name: "StoreDaemon",
            dependencies: [
                "StoreBus", "StoreEngine", "SyncEngine", "Sealing", "Replication", "SDBus", "PropertyList",
                "PropertyListFiles", "AppManifest", "ManagedDefaults", "CSystemd", "Files", "RemoteAddress",
                "PlainText",
                .product(name: "Logging", package: "swift-log"),
            ]),
        // Called as ubiquitousctl it is the command line: the package installs one program for both.
        .executableTarget(
            name: "ubiquitous-stored",
            dependencies: [
                "ControlCommands", "StoreDaemon", "SyncBackends", "Replication", "StoreBus", "SDBus", "AppManifest",
                "Files", "RemoteAddress", "PlainText",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ]),

        // The library for apps in Swift.
        .target(
            name: "UbiquitousStore", dependencies: ["StoreBus", "SDBus", "PropertyList", "AppManifest", "PlainText"]),

        // Apple's UserDefaults on the service; UbiquitousDefaults gives an app its names in place of Foundation's.
        .target(
            name: "DefaultsDomains",
            dependencies: [
                "UbiquitousStore", "ManagedDefaults", "AppManifest", "StoreBus", "SDBus", "PropertyListFiles",
                "PropertyList", "Files", "PlainText",
            ]),

        .target(name: "UbiquitousDefaults", dependencies: ["DefaultsDomains"]),

        // The command line.
        .target(
            name: "ControlCommands",
            dependencies: [
                "UbiquitousStore", "DefaultsDomains", "ManagedDefaults", "StoreBus", "SDBus", "PropertyList",
                "PropertyListFiles", "AppManifest", "Files", "RemoteAddress", "PlainText", "RecoveryWordList",
                "ServiceMessages",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Sources/ubiquitousctl"),
        .executableTarget(name: "ubiquitousctl", dependencies: ["ControlCommands"], path: "Sources/ubiquitousctl-main"),

        // Prints a store's signals; the demonstration's subscriber.
        .executableTarget(name: "watch-store", dependencies: ["StoreBus", "SDBus", "PropertyList"]),

        // What tests of this package and of others need: a private bus with devices on it. The service is here so that
        // it is built with whatever uses this. It is started as a program, and not linked.
        .target(
            name: "UbiquitousStoreTesting",
            dependencies: [
                "StoreBus", "SDBus", "PropertyList", "CSystemd",
                .target(name: "ubiquitous-stored", condition: .when(traits: ["Service"])),
            ]),

        // Records what the service does to files, and kills it at a chosen moment.
        .target(name: "DiskJournal", path: "Tests/DiskJournal"),

        // Repeatable random numbers, for all tests.
        .target(name: "SeededRandom"),

        // Makes the service's lookups of host names take forever; preloaded, too.
        .target(name: "SlowNames", path: "Tests/SlowNames"),

        // Puts a program's wall clock ahead of the kernel's; preloaded, too.
        .target(name: "ShiftedClock", path: "Tests/ShiftedClock"),

        // What tests of a backend need. It has no bus, because no backend knows one.
        .target(
            name: "BackendTesting",
            dependencies: ["Blobs", "Sealing", "Replication", "PropertyList", "SeededRandom"]),

        .testTarget(name: "ServiceMessagesTests", dependencies: ["ServiceMessages"]),
        .testTarget(name: "FilesTests", dependencies: ["Files"]),
        .testTarget(name: "PlainTextTests", dependencies: ["PlainText", "SeededRandom"]),
        .testTarget(name: "RemoteAddressTests", dependencies: ["RemoteAddress"]),
        // Compares the layers of ARCHITECTURE.md with the sources.
        .testTarget(name: "ArchitectureTests"),
        .testTarget(name: "EventLoopTests", dependencies: ["EventLoop"]),
        .testTarget(name: "SDBusTests", dependencies: ["SDBus", "EventLoop", "SeededRandom", "CSystemd"]),
        // Servers on loopback: scripted ones, and real ones where they are installed.
        .target(name: "ServerTesting", path: "Tests/ServerTesting"),
        .testTarget(
            name: "HTTPClientTests", dependencies: ["HTTPClient", "EventLoop", "RemoteAddress", "ServerTesting"]),
        .testTarget(name: "PropertyListTests", dependencies: ["PropertyList", "SeededRandom"]),
        .testTarget(name: "PropertyListFilesTests", dependencies: ["PropertyListFiles", "PropertyList"]),
        .testTarget(
            name: "StoreEngineTests", dependencies: ["StoreEngine", "Replication", "PropertyList", "SeededRandom"]),
        .testTarget(name: "ReplicationTests", dependencies: ["Replication", "PropertyList", "SeededRandom"]),
        .testTarget(
            name: "SyncEngineTests", dependencies: ["SyncEngine", "StoreEngine", "Replication", "PropertyList"]),
        .testTarget(
            name: "SealingTests", dependencies: ["Sealing", "RecoveryWordList", "PropertyList", "SeededRandom"]),
        .testTarget(
            name: "SyncBackendsTests",
            dependencies: [
                "BackendTesting", "Simulation", "SyncBackends", "BackendSupport", "Blobs", "Sealing", "Folder",
                "WebDAV", "Etcd", "HTTPClient", "EventLoop", "ServerTesting",
                "SyncEngine", "StoreEngine", "Replication", "PropertyList", "SeededRandom", "RemoteAddress", "Files",
            ]),
        // Devices, or bare clients, that write to a cluster of etcd without a pause; for the benchmarks.
        .executableTarget(
            name: "etcd-load",
            dependencies: [
                "BackendTesting", "BackendSupport", "Etcd", "Replication", "HTTPClient", "PropertyList",
                "PropertyListFiles",
            ],
            path: "Tests/EtcdLoad"),
        .testTarget(name: "StoreBusTests", dependencies: ["StoreBus", "SDBus", "PropertyList"]),
        .testTarget(
            name: "AppManifestTests", dependencies: ["AppManifest", "PropertyList", "PropertyListFiles"]),
        .testTarget(
            name: "ManagedDefaultsTests",
            dependencies: ["ManagedDefaults", "AppManifest", "PropertyList", "PropertyListFiles"]),
        .testTarget(
            name: "DefaultsDomainsTests",
            dependencies: [
                "DefaultsDomains", "UbiquitousStore", "ManagedDefaults", "UbiquitousStoreTesting", "StoreBus", "SDBus",
                "SeededRandom", "PropertyList", "Files", "IsolatedApp", "defaults-app",
            ]),
        // A module in which everything is the main actor's by default, as in Xcode's template.
        .target(
            name: "IsolatedApp", dependencies: ["UbiquitousDefaults", "UbiquitousStore"], path: "Tests/IsolatedApp",
            swiftSettings: [.defaultIsolation(MainActor.self)]),
        // A program as it is written for Apple's systems, but for one line, in the language mode of its time.
        .executableTarget(
            name: "defaults-app", dependencies: ["UbiquitousDefaults", "UbiquitousStore"], path: "Tests/DefaultsApp",
            swiftSettings: [.swiftLanguageMode(.v5)]),
        .testTarget(
            name: "StoreDaemonTests",
            dependencies: [
                "StoreDaemon", "StoreBus", "SDBus", "Sealing", "StoreEngine", "SyncEngine", "Replication",
                "PropertyList", "AppManifest", "BackendTesting", "Blobs", "Files", "UbiquitousStoreTesting",
                .product(name: "Logging", package: "swift-log"),
            ]),
        // Devices, remotes and all their faults, in one thread, from a seed.
        .target(
            name: "Simulation",
            dependencies: [
                "BackendTesting", "Blobs", "Etcd", "Sealing", "SyncEngine", "StoreEngine", "Replication", "HTTPClient",
                "PropertyList", "SeededRandom", .product(name: "Crypto", package: "swift-crypto"),
            ],
            path: "Tests/Simulation/World",
            // These checks take a tenth of a seed's time. Debug builds have them, and the tests run seeds with those.
            swiftSettings: [.unsafeFlags(["-enforce-exclusivity=unchecked"], .when(configuration: .release))]),
        .executableTarget(
            name: "simulate",
            dependencies: ["Simulation", .product(name: "ArgumentParser", package: "swift-argument-parser")],
            path: "Tests/Simulation/Command"),
        .testTarget(
            name: "SimulationTests", dependencies: ["Simulation", "simulate"], path: "Tests/Simulation/Tests"),
        // What the service has to withstand: malformed messages from a seed, many callers, and attackers.
        .target(
            name: "PressureTesting",
            dependencies: ["UbiquitousStoreTesting", "StoreBus", "SDBus", "PropertyList", "SeededRandom"],
            path: "Tests/Pressure/Making"),
        .executableTarget(
            name: "pressure",
            dependencies: [
                "PressureTesting", "UbiquitousStoreTesting", "StoreBus", "SDBus", "PropertyList",
                "PropertyListFiles", "Etcd", "ServerTesting",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Crypto", package: "swift-crypto"),
            ],
            path: "Tests/Pressure/Command"),
        // The code that reads bytes from outside, for libFuzzer: script/fuzz.
        .target(
            name: "FuzzTargets",
            dependencies: [
                "Blobs", "Sealing", "AppManifest", "PropertyListFiles", "PropertyList",
                .product(name: "Crypto", package: "swift-crypto"),
            ],
            path: "Tests/Fuzz/Targets"),
        .executableTarget(name: "fuzz", dependencies: ["FuzzTargets"], path: "Tests/Fuzz/Command"),
        .testTarget(name: "FuzzTargetsTests", dependencies: ["FuzzTargets"], path: "Tests/Fuzz/Tests"),
        // An app that was written for Apple's systems, in the language mode that it was written in.
        .executableTarget(
            name: "sample-app", dependencies: ["UbiquitousStore"], path: "Tests/SampleApp",
            swiftSettings: [.swiftLanguageMode(.v5)]),
        .testTarget(
            name: "UbiquitousStoreTests",
            dependencies: [
                "UbiquitousStore", "UbiquitousStoreTesting", "StoreBus", "SDBus", "EventLoop", "PropertyList",
                "SeededRandom", "sample-app", "ShiftedClock",
            ]),
        .testTarget(
            name: "ubiquitousctlTests",
            dependencies: [
                "ControlCommands", "ubiquitousctl", "UbiquitousStoreTesting", "ServerTesting", "ServiceMessages",
                "SDBus", "PropertyList", "defaults-app",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]),
        .testTarget(
            name: "IntegrationTests",
            dependencies: [
                "UbiquitousStoreTesting", "StoreBus", "SDBus", "PropertyList", "Folder", "BackendSupport", "Blobs",
                "Sealing", "SyncEngine", "StoreEngine", "Replication", "SeededRandom", "DiskJournal",
                "SlowNames", "ServerTesting", "PressureTesting",
            ]),
    ]
)

// An app that uses only the libraries switches the trait off, and fetches no other package, because the libraries need
// none.
for target in package.targets {
    target.dependencies = target.dependencies.map {
        guard case .productItem(let name, let package, let aliases, nil) = $0 else { return $0 }
        return .productItem(
            name: name, package: package, moduleAliases: aliases, condition: .when(traits: ["Service"]))
    }
}

// The windows need GTK, which building the service does not require: script/desktop sets this.
if Context.environment["UBIQUITOUS_STORE_DESKTOP"] != nil {
    package.targets += [
        .systemLibrary(
            name: "CGio", path: "Sources/Desktop/CGio", pkgConfig: "gio-unix-2.0",
            providers: [.apt(["libglib2.0-dev"])]),
        .systemLibrary(
            name: "CAdwaita", path: "Sources/Desktop/CAdwaita", pkgConfig: "libadwaita-1",
            providers: [.apt(["libadwaita-1-dev"])]),
        .target(name: "GLibLoop", dependencies: ["CGio"], path: "Sources/Desktop/GLibLoop"),
        .target(name: "Adwaita", dependencies: ["CAdwaita", "GLibLoop"], path: "Sources/Desktop/Adwaita"),
        .target(name: "PrefsColors", dependencies: ["GLibLoop"], path: "Sources/Desktop/PrefsColors"),
        .executableTarget(
            name: "prefs-in-storage", dependencies: ["Adwaita", "GLibLoop", "PrefsColors", "UbiquitousDefaults"],
            path: "Sources/Desktop/PrefsInStorage", resources: [.embedInCode("UI/window.ui")]),
        .executableTarget(
            name: "prefs-in-cloud", dependencies: ["Adwaita", "GLibLoop", "PrefsColors", "UbiquitousStore"],
            path: "Sources/Desktop/PrefsInCloud", resources: [.embedInCode("UI")]),
        // What the settings panel shows and does, without GTK.
        .target(
            name: "PanelModel",
            dependencies: [
                "GLibLoop", "UbiquitousStore", "AppManifest", "HTTPClient", "RemoteAddress", "PropertyListFiles",
                "PropertyList", "StoreBus", "SDBus", "EventLoop", "RecoveryWordList", "ServiceMessages",
            ],
            path: "Sources/Desktop/PanelModel"),
        .executableTarget(
            name: "ubiquitous-store-settings",
            dependencies: ["Adwaita", "PanelModel", "GLibLoop", "UbiquitousStore", "PropertyList"],
            path: "Sources/Desktop/SettingsPanel", resources: [.embedInCode("UI")]),
        // Notifies users of problems that keep an account from syncing; a program of its own, without GTK.
        .executableTarget(
            name: "ubiquitous-store-notifier",
            dependencies: ["GLibLoop", "StoreBus", "EventLoop", "SDBus", "Files", "PropertyList"],
            path: "Sources/Desktop/Notifier"),
        // A screen, a session bus, and what assistive technology sees.
        .target(
            name: "DesktopTesting", dependencies: ["UbiquitousStoreTesting", "SDBus"], path: "Tests/Desktop/Testing"),
        .testTarget(
            name: "PanelModelTests",
            dependencies: [
                "PanelModel", "UbiquitousStore", "UbiquitousStoreTesting", "ServerTesting", "HTTPClient",
                "PropertyList",
            ],
            path: "Tests/Desktop/PanelModelTests"),
        .testTarget(
            name: "NotifierTests",
            dependencies: [
                "ubiquitous-store-notifier", "UbiquitousStoreTesting", "StoreBus", "SDBus", "PropertyList",
            ],
            path: "Tests/Desktop/NotifierTests"),
        .testTarget(
            name: "SettingsPanelTests",
            dependencies: [
                "ubiquitous-store-settings", "DesktopTesting", "UbiquitousStoreTesting", "ServerTesting", "SDBus",
                "PropertyList", "SeededRandom",
            ],
            path: "Tests/Desktop/SettingsPanelTests"),
        .testTarget(
            name: "PrefsInCloudTests",
            dependencies: [
                "prefs-in-cloud", "prefs-in-storage", "PrefsColors", "DesktopTesting", "UbiquitousStoreTesting",
                "UbiquitousStore", "SDBus", "PropertyList",
            ],
            path: "Tests/Desktop/PrefsInCloudTests"),
    ]
    for program in ["prefs-in-cloud", "prefs-in-storage", "ubiquitous-store-notifier", "ubiquitous-store-settings"] {
        package.products.append(.executable(name: program, targets: [program]))
    }
}

// https://github.com/swiftlang/swift-evolution: SE-0335, SE-0409, SE-0444, SE-0461.
let features: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]
for target in package.targets
where target.type != .system && !["sample-app", "defaults-app", "IsolatedApp"].contains(target.name) {
    target.swiftSettings = features + (target.swiftSettings ?? [])
}
