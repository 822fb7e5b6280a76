// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import SDBus
import ServerTesting
import StoreBus
import Testing
import UbiquitousStoreTesting

/// A school: two machines, a teacher and a pupil on both, one account on the school's server, and an administrator.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct InstitutionTests {
    private nonisolated static let server = WebDAVServer.Kind.installed.first {
        [.lighttpd, .apache, .nginx, .rclone].contains($0)
    }
    private nonisolated static let needs: Comment = "it needs root, and a WebDAV server; script/bootstrap --all"

    private let app = "org.example.Editor"
    private let teacher = Users.daemon
    private let pupil = Users.nobody

    /// The administrator's file for all users: which keys roam, and recommended values.
    private var everybody: String {
        """
        <plist version="1.0"><dict>
        <key>Ubiquitous</key><dict><key>\(app)</key><array><string>lesson.*</string></array></dict>
        <key>Recommended</key><dict><key>\(app)</key><dict><key>size</key><integer>14</integer></dict></dict>
        </dict></plist>
        """
    }

    private var pupils: String {
        """
        <plist version="1.0"><dict><key>Users</key><array><string>nobody</string></array>
        <key>Forced</key><dict><key>\(app)</key><dict><key>chat</key><false/></dict></dict>
        </dict></plist>
        """
    }

    private func install(_ text: String, _ name: String, on device: Device) throws {
        let path = "\(device.managedDirectory)/\(name)"
        try text.write(toFile: path + ".new", atomically: false, encoding: .utf8)
        try FileManager.default.moveItem(atPath: path + ".new", toPath: path)
    }

    private func managed(_ device: Device, as user: UInt32) async throws -> [String: Value] {
        try await BusClient(device.bus, as: user).domain(app).managed()
    }

    private func store(_ device: Device, as user: UInt32) throws -> StoreClient {
        try BusClient(device.bus, as: user).store(notes)
    }

    @Test(.enabled(if: Users.areSeveral && server != nil, needs))
    func `a school's account has the lessons of teacher and pupil on both machines, and the pupil what is forced`()
        async throws
    {
        let server = try WebDAVServer(#require(Self.server), access: .basic)
        let credentials: KeyValuePairs<String, Value> = [
            "user": .string(Text(WebDAVServer.user)), "password": .string(Text(WebDAVServer.password)),
        ]
        var manifest = ManifestText(notes, application: app, executables: ["/usr/bin/edit"])
        manifest.ubiquitousDefaults = ["colour"]
        try await withTwoDevices(users: true) {
            $0.manifests = [manifest]
        } _: { devices in
            let machines = [devices.laptop, devices.phone]
            for machine in machines {
                machine.keepSecret(WebDAVServer.password)
                try install(everybody, "10-school.plist", on: machine)
                try install(pupils, "20-pupils.plist", on: machine)
                for user in [teacher, pupil] {
                    try await BusClient(machine.bus, as: user).account.join(server.url + "/school", credentials)
                }
            }
            try await eventually("the files count") {
                try await managed(devices.phone, as: pupil)["forced"] == .dictionary(["chat": .boolean(false)])
            }

            // The same keys roam for both users, but values are forced only for the pupil.
            for user in [teacher, pupil] {
                let managed = try await managed(devices.phone, as: user)
                #expect(managed["ubiquitous"] == .array([.string("lesson.*")]))
                #expect(managed["recommended"] == .dictionary(["size": .integer(14)]))
            }
            let free = try await managed(devices.laptop, as: teacher)["forced"] ?? .dictionary([:])
            #expect(free == .dictionary([:]))

            // The teacher sets a lesson on one machine, and both users get it on both. Other keys don't roam.
            try await BusClient(devices.laptop.bus, as: teacher).domain(app).set("size", .integer(20))
            try await store(devices.laptop, as: teacher).set("lesson.level", .integer(3))
            try await reach(machines, "lesson.level", .integer(3))
            #expect(try await BusClient(devices.phone.bus, as: teacher).domain(app).snapshot().values.isEmpty)
            #expect(try await BusClient(devices.laptop.bus, as: pupil).domain(app).snapshot().values.isEmpty)

            // The pupil continues on the other machine.
            try await store(devices.phone, as: pupil).set("lesson.level", .integer(4))
            try await reach(machines, "lesson.level", .integer(4))

            // A user who leaves the account keeps nothing of it, and the other one notices nothing.
            try await BusClient(devices.phone.bus, as: pupil).account.signOut(keepingValues: false)
            #expect(try await store(devices.phone, as: pupil).everything().isEmpty)
            try await store(devices.laptop, as: teacher).set("lesson.level", .integer(5))
            try await eventually("the teacher's other machine has it") {
                try await sync(machines, [teacher])
                return try await store(devices.phone, as: teacher).value("lesson.level") == .integer(5)
            }
            #expect(try await store(devices.phone, as: pupil).everything().isEmpty)
        }
    }

    private func sync(_ machines: [Device], _ users: [UInt32]) async throws {
        for machine in machines {
            for user in users { try await BusClient(machine.bus, as: user).account.syncNow() }
        }
    }

    /// Waits until both users have a value on both machines.
    private func reach(_ machines: [Device], _ key: Text, _ value: Value) async throws {
        try await eventually("\(key) is \(value) everywhere") {
            try await sync(machines, [teacher, pupil])
            for machine in machines {
                for user in [teacher, pupil] where try await store(machine, as: user).everything()[key] != value {
                    return false
                }
            }
            return true
        }
    }
}
