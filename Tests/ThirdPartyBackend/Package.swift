// swift-tools-version: 6.2

import PackageDescription

// A backend as a third party has it: the example of docs/backends.md, against what this repository offers as products.
// `script/third-party` builds it, and sees that no database comes along.
let package = Package(
    name: "third-party-backend",
    dependencies: [.package(name: "ubiquitous-store", path: "../..")],
    targets: [
        .target(name: "TableBackend", dependencies: [.product(name: "Replication", package: "ubiquitous-store")])
    ]
)
