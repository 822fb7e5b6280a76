// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import SDBus
import StoreBus
import Testing
import UbiquitousStoreTesting

/// Keys of an app's settings that are the same on all of the user's devices: the app's store holds them.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct RoamingDomainTests {
    private let app = "org.example.Editor"

    private var manifest: ManifestText {
        var manifest = ManifestText(notes, application: app, executables: ["/usr/bin/edit"])
        manifest.ubiquitousDefaults = ["colour", "view.*"]
        return manifest
    }

    private func open(_ device: Device) async throws -> [String: Value] {
        try await BusClient(device.bus).defaults.open([""], program: "/usr/bin/edit")[0]
    }

    private func patterns(_ opened: [String: Value]) -> Value? {
        if case .dictionary(let managed)? = opened["managed"] { managed["ubiquitous"] } else { nil }
    }

    @Test func `keys that the manifest names are the same on both devices, and the domain's own stay`() async throws {
        try await withTwoDevices {
            $0.manifests = [manifest]
        } _: { devices in
            try await devices.join()
            let opened = try await open(devices.laptop)
            #expect(opened["store"] == .string(Text(notes)))
            #expect(patterns(opened) == .array([.string("colour"), .string("view.*")]))
            try await devices.store(devices.laptop).set("colour", .string("red"))
            try await BusClient(devices.laptop.bus).domain(app).set("window", .integer(1))
            #expect(try await devices.converge() == ["colour": .string("red")])
            let other = try await open(devices.phone)
            #expect(other["store"] == .string(Text(notes)) && other["values"] == .dictionary([:]))
        }
    }

    @Test func `a fresh device has the account's value of a roaming key, and its own goes to history`() async throws {
        try await withTwoDevices {
            $0.manifests = [manifest]
        } _: { devices in
            try await devices.store(devices.laptop).set("colour", .string("red"))
            let phone = try devices.store(devices.phone)
            try await phone.set("colour", .string("green"))
            try await devices.join()
            #expect(try await devices.converge() == ["colour": .string("red")])
            #expect(try await phone.history("colour").first?["value"] == .string("green"))
        }
    }

    @Test func `an institution says which keys roam, and its account has their values`() async throws {
        try await withTwoDevices {
            $0.manifests = [manifest]
        } _: { devices in
            let phone = try BusClient(devices.phone.bus)
            let domain = try phone.domain(app)
            try await domain.subscribe()
            try await domain.set("lesson.level", .integer(1))
            for device in [devices.laptop, devices.phone] { try install(on: device) }
            #expect(try await domain.signal("managed") { $0.reason == 32 }.keys == ["lesson.*"])
            #expect(try await domain.managed()["ubiquitous"] == .array([.string("lesson.*")]))
            #expect(patterns(try await open(devices.phone)) == .array([.string("lesson.*")]))
            try await devices.store(devices.laptop).set("lesson.level", .integer(3))
            try await devices.join()
            #expect(try await devices.converge() == ["lesson.level": .integer(3)])
            // The account's value hides the one from before, which isn't lost.
            #expect(try await domain.value("lesson.level") == .integer(1))
        }
    }

    private func install(on device: Device) throws {
        let text = """
            <plist version="1.0"><dict><key>Ubiquitous</key><dict><key>\(app)</key>
            <array><string>lesson.*</string></array></dict></dict></plist>
            """
        let path = device.managedDirectory + "/50-school.plist"
        try text.write(toFile: path + ".new", atomically: false, encoding: .utf8)
        try FileManager.default.moveItem(atPath: path + ".new", toPath: path)
    }
}
