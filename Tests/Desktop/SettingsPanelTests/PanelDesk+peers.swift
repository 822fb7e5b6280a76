// SPDX-License-Identifier: Apache-2.0

import DesktopTesting
import SDBus
import UbiquitousStoreTesting

extension PanelDesk {
    /// Another device, without a screen.
    @BusActor
    struct Peer {
        let device: Device
        let client: BusClient
        var account: AccountClient { client.account }

        init(_ name: String) async throws {
            let bus = try await PrivateBus.start()
            var options = Device.Options()
            options.name = name
            options.manifests = [ManifestText(PanelDesk.notes), ManifestText(PanelDesk.prefs)]
            device = try await Device.start(on: bus, options)
            client = try BusClient(bus)
        }
    }

    /// Shows another page, by keyboard.
    func turn(to page: String) async throws {
        try await screen.reach(page, tab: true)
        try await screen.press(.space)
    }
}
