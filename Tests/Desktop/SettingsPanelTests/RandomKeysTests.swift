// SPDX-License-Identifier: Apache-2.0

import DesktopTesting
import Foundation
import PropertyList
import SDBus
import SeededRandom
import Testing
import UbiquitousStoreTesting

extension PanelWindowTests {
    /// Random keys and clicks, while the service and the account change.
    @Suite(.serialized, .enabled(if: Screen.isAvailable, "Xvfb, at-spi2-core and ImageMagick are not installed"))
    @BusActor
    struct RandomKeysTests {
        private nonisolated static let seed =
            ProcessInfo.processInfo.environment["UBIQUITOUS_STORE_SEED"].flatMap(UInt64.init) ?? 20

        /// The state in which the panel is opened.
        private enum Beginning: CaseIterable { case signedOut, inFolder, encrypted, keyIsLost, remoteIsGone }

        @Test(arguments: seed..<seed + 3)
        func `whatever keys are pressed, in whatever order, the panel goes on and GTK has no complaints`(_ seed: UInt64)
            async throws
        {
            print("The order of the keys is of the seed \(seed); UBIQUITOUS_STORE_SEED sets another first one.")
            var random = SplitMix(seed: seed)
            let style = [Style.light, .german, .small, .large].randomElement(using: &random) ?? .light
            let (desk, folder) = (try await PanelDesk(style: style), try TemporaryDirectory())
            let phone = try await PanelDesk.Peer("phone")
            try await begin(Beginning.allCases.randomElement(using: &random) ?? .signedOut, desk, phone, folder.path)
            try await desk.open()
            var isRunning = true
            for _ in 0..<200 {
                switch Int.random(in: 0..<46, using: &random) {
                case 0..<14: try await desk.screen.press(.tab)
                case 14..<17: try await desk.screen.press(.backTab)
                case 17..<22: try await desk.screen.press(.space)
                case 22..<28: try await desk.screen.press(.enter)
                case 28..<30: try await desk.screen.press(.down)
                case 30..<32: try await desk.screen.press(.escape)
                case 32: try await desk.screen.type("/x y")
                case 33:
                    // The panel may be closing.
                    try? await desk.activate(
                        ["show-account", "show-devices", "show-apps"].randomElement(using: &random) ?? "")
                case 34: try? await desk.activate("shortcuts")
                case 35:
                    // The panel may have encrypted the account.
                    try? await phone.account.syncNow()
                case 36:
                    try await phone.client.store(PanelDesk.notes).set(
                        "n", .integer(Int64.random(in: 0..<9, using: &random)))
                case 37 where isRunning:
                    desk.device.kill()
                    isRunning = false
                case 38..<42:
                    try await desk.screen.click(
                        x: .random(in: 0..<900, using: &random), y: .random(in: 0..<700, using: &random))
                case 42..<44:
                    try await desk.screen.press(.alt, "123abcdefghijklmnoprstuw".randomElement(using: &random) ?? "1")
                default:
                    if !isRunning { try await desk.device.start() }
                    isRunning = true
                }
                // Some keys come while a page slides or a dialog opens, others later.
                if Int.random(in: 0..<4, using: &random) == 0 {
                    try await Task.sleep(for: .milliseconds(Int.random(in: 0..<200, using: &random)))
                }
                // Enter on the header bar's button closes the window.
                if desk.window?.exit != nil { try await desk.open() }
            }
            if !isRunning { try await desk.device.start() }
            // After two deaths during its sync an account waits for ten minutes, unless it is told to sync.
            try? await desk.client.account.syncNow()
            // The page updates even behind open dialogs.
            let states = [
                "Up to Date", "Not Signed In", "Paused on This Device", "The Account Is Gone",
                "The Recovery Words Are Missing",
            ].map(desk.text)
            do {
                try await desk.screen.waits(until: "the panel shows the account") { sight in
                    if desk.window?.exit != nil { try await desk.open() }
                    return states.contains(where: sight.has)
                }
            } catch {
                try await desk.picture("random")
                Issue.record("\(error); it shows: \(try await desk.screen.look().labels); \(desk.screen.log)")
            }
            #expect(desk.complaints == [])
        }

        private func begin(_ beginning: Beginning, _ desk: PanelDesk, _ phone: PanelDesk.Peer, _ folder: String)
            async throws
        {
            try await desk.device.start()
            if beginning == .signedOut { return }
            let isEncrypted = beginning == .encrypted || beginning == .keyIsLost
            try await desk.client.account.join("folder://" + folder, ["encrypt": .boolean(isEncrypted)])
            if isEncrypted {
                if beginning == .keyIsLost { try await desk.device.loseKey() }
            } else {
                try await phone.account.join("folder://" + folder)
            }
            if beginning == .remoteIsGone { try FileManager.default.removeContents(ofDirectory: folder) }
        }
    }
}
