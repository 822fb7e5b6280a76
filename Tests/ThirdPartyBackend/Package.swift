// swift-tools-version: 6.2

import PackageDescription

// A third party's backend: the example of docs/backends.md, built against this repository's products.
// `script/third-party` builds it, and checks that no database is built with it.
let package = Package(
    name: "third-party-backend",
    dependencies: [.package(name: "ubiquitous-store", path: "../..")],
    targets: [
        .target(name: "TableBackend", dependencies: [.product(name: "Replication", package: "ubiquitous-store")])
    ]
)
