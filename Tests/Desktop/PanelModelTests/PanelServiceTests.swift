// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import Testing
import UbiquitousStoreTesting

@testable import PanelModel
@testable import UbiquitousStore

/// What the panel does, against a service on a private bus.
@MainActor
struct PanelServiceTests {
    private static let notes = "org.example.Notes"

    private func start() async throws -> (Device, Panel) {
        let bus = try await PrivateBus.start()
        var options = Device.Options()
        options.name = "laptop"
        options.manifests = [ManifestText(Self.notes)]
        return (try await Device.start(on: bus, options), Panel(bus: bus.address))
    }

    private func state(_ panel: Panel, _ what: String, where holds: (PanelState) -> Bool) async throws -> PanelState {
        do {
            try await eventually(what) {
                if case .state(let state) = panel.content { return holds(state) }
                return false
            }
        } catch {
            Issue.record("instead: \(panel.content)")
            throw error
        }
        guard case .state(let state) = panel.content else { throw CancellationError() }
        return state
    }

    private func folderForm(_ path: String) -> SignInForm {
        var form = SignInForm(.folder)
        form.values[.path] = path
        return form
    }

    @Test func `signing in to a folder is seen without being asked for`() async throws {
        let (device, panel) = try await start()
        panel.look()
        _ = try await state(panel, "signed out") { $0.accountPage.step == .signIn }
        let folder = try device.directory.makeDirectory("My sync")
        try await panel.service.signIn(folderForm(folder))
        let state = try await state(panel, "signed in") { $0.accountPage.title == "Up to Date" }
        #expect(state.accountPage.address == folder)
        #expect(state.devicesPage.rows.map(\.title) == ["laptop"])
        #expect(state.apps.map(\.identifier) == [Self.notes])
    }

    @Test func `settings are not forgotten while the account lacks changes`() async throws {
        let (device, panel) = try await start()
        let (service, theme) = (panel.service, Text("theme"))
        try await service.signIn(folderForm(try device.directory.makeDirectory("My sync")))
        try await service.setPaused(true)
        _ = try await service.put(.string("dark"), as: theme, in: Self.notes)
        await #expect(throws: PanelService.ChangesAreUnsaved.self) {
            try await service.remove(Self.notes, everywhere: false)
        }
        #expect(try await service.values(of: Self.notes) == [theme: .string("dark")])
        try await service.setPaused(false)
        try await service.remove(Self.notes, everywhere: false)
        try await eventually("the account has the change") {
            try await service.values(of: Self.notes) == [theme: .string("dark")]
        }
    }

    @Test func `a folder that is a file is said at the path`() async throws {
        let (device, panel) = try await start()
        let file = device.directory.path + "/file"
        try Data().write(to: URL(filePath: file))
        let form = folderForm(file)
        let error = await #expect(throws: (any Error).self) { try await panel.service.signIn(form) }
        let flaw = try #require(error.map { FieldError($0, in: form) })
        #expect(flaw.field == .path && flaw.sentence == "This is a file. Enter a folder.")
        #expect(flaw.details.contains("is not what was expected"))
        let steps = try await panel.service.check(form)
        #expect(steps.last?.isPassed == false)
    }

    @Test func `an earlier value is restored, and that undone`() async throws {
        let (device, panel) = try await start()
        let store = try await BusClient(device.bus).store(Self.notes)
        try await store.set("theme", .string("dark"))
        try await store.set("theme", .string("light"))
        let history = HistoryPage(
            try await panel.service.history(of: "theme", in: Self.notes), devices: [:], now: 0)
        let earlier = try #require(history.rows.first)
        let before = try await panel.service.put(earlier.value, as: "theme", in: Self.notes)
        #expect(try await store.value("theme") == .string("dark"))
        _ = try await panel.service.put(before, as: "theme", in: Self.notes)
        #expect(try await store.value("theme") == .string("light"))
    }

    @Test func `a device is renamed, and a store switched off`() async throws {
        let (device, panel) = try await start()
        try await panel.service.signIn(folderForm(try device.directory.makeDirectory("sync")))
        panel.look()
        let before = try await state(panel, "signed in") { $0.devicesPage.isSignedIn && !$0.devices.isEmpty }
        try await panel.service.rename(before.devices[0].identifier, to: " <b>desk</b> ")
        try await panel.service.setSynchronized(Self.notes, false)
        panel.look()
        _ = try await state(panel, "renamed, and switched off") {
            $0.devicesPage.rows.first?.title == "<b>desk</b>" && $0.apps.first?.isSynchronized == false
        }
    }

    @Test func `a device that another one has forgotten is forgotten without an error`() async throws {
        let ((device, panel), (second, other)) = (try await start(), try await start())
        var form = folderForm(try device.directory.makeDirectory("sync"))
        form.encrypts = false
        for panel in [panel, other] { try await panel.service.signIn(form) }
        try await panel.service.syncNow()
        panel.look()
        let state = try await state(panel, "both are listed") { $0.devices.count == 2 }
        let gone = try #require(state.devices.first { !$0.isThisOne }).identifier
        // A device that still polls would come back.
        try await second.stop()
        for _ in 0..<2 { try await panel.service.forget(gone) }
        let error = await #expect(throws: (any Error).self) { try await panel.service.rename(gone, to: "x") }
        #expect(error.map { ErrorSentence.text($0) } == "The account doesn't have this device any more.")
    }

    @Test func `what nobody sees is not read again`() async throws {
        let (device, panel) = try await start()
        panel.look()
        _ = try await state(panel, "no settings") { $0.apps.map(\.keys) == [0] }
        try await BusClient(device.bus).store(Self.notes).set("theme", .string("dark"))
        let former = try await state(panel, "read") { _ in true }.time
        panel.look(atApps: false)
        let state = try await state(panel, "read without the apps") { $0.time > former }
        #expect(state.apps.map(\.keys) == [0])
        panel.look()
        _ = try await self.state(panel, "read with the apps") { $0.apps.map(\.keys) == [1] }
    }

    @Test func `an encrypted account lets another device in by its words alone`() async throws {
        let ((device, panel), (second, other)) = (try await start(), try await start())
        defer { withExtendedLifetime(second) {} }
        var form = folderForm(try device.directory.makeDirectory("sync"))
        try await panel.service.signIn(form)
        let words = try await panel.service.recoveryWords()
        #expect(words.words.count == 12)
        for entered in [nil, "abandon amount liar amount expire adjust cage candy arch gather drum buyer"] {
            form.recoveryWords = entered
            let error = await #expect(throws: UbiquitousStoreError.self) { try await other.service.signIn(form) }
            #expect(error?.code == (entered == nil ? .keyNeeded : .keyWrong))
        }
        form.recoveryWords = words.words.joined(separator: "\n").uppercased()
        try await other.service.signIn(form)
        other.look()
        _ = try await state(other, "signed in") { $0.accountPage.hasRecoveryWords }
        try await panel.service.confirmRecoveryWords()
    }

    @Test func `an unencrypted account is encrypted, and gets other words`() async throws {
        let (device, panel) = try await start()
        var form = folderForm(try device.directory.makeDirectory("sync"))
        form.encrypts = false
        try await panel.service.signIn(form)
        panel.look()
        _ = try await state(panel, "unencrypted") { $0.accountPage.keyMove == .encrypt && $0.accountPage.canMove }
        try await panel.service.move(.encrypt)
        let words = try await panel.service.recoveryWords().words
        #expect(words.count == 12)
        _ = try await state(panel, "encrypted") { $0.accountPage.keyMove == .replaceWords }
        try await panel.service.move(.replaceWords)
        #expect(try await panel.service.recoveryWords().words != words)
    }

    @Test func `a service that goes away is told of, and found again`() async throws {
        let (device, panel) = try await start()
        try await eventually("it is there") {
            panel.look()
            if case .state = panel.content { return true } else { return false }
        }
        device.kill()
        try await eventually("it is gone") {
            if case .unavailable = panel.content { true } else { false }
        }
        try await device.start()
        _ = try await state(panel, "there again") { _ in true }
    }

    @Test func `of two panels each sees what the other does`() async throws {
        let (device, panel) = try await start()
        let other = Panel(bus: device.bus.address)
        panel.look()
        other.look()
        _ = try await state(other, "signed out") { $0.accountPage.step == .signIn }
        try await panel.service.signIn(folderForm(try device.directory.makeDirectory("sync")))
        try await panel.service.setPaused(true)
        _ = try await state(other, "paused") { $0.accountPage.step == .resume }
    }

    @Test func `a remote that does not answer can be left alone`() async throws {
        let (device, panel) = try await start()
        let silent = try SilentServer()
        var form = SignInForm(.webDAV)
        form.values[.address] = "http://127.0.0.1:\(silent.port)/x"
        let service = panel.service
        let attempt = Task.detached { [form] in try await service.signIn(form) }
        defer { withExtendedLifetime(device) {} }
        try await eventually("it is asked") { silent.isAsked }
        attempt.cancel()
        await #expect(throws: CancellationError.self) { try await attempt.value }
    }
}
