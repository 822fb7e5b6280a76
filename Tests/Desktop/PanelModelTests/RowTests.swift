// SPDX-License-Identifier: Apache-2.0

import PropertyList
import Testing

@testable import PanelModel
@testable import UbiquitousStore

struct RowTests {
    private func device(_ name: String, seen: UInt64 = 0, this: Bool = false) -> DeviceDescription {
        DeviceDescription(identifier: "id-" + name, name: name, lastSeen: seen, isThisOne: this, moves: "")
    }

    @Test func `a store says which of its limits is near`() {
        func subtitle(_ keys: Int, _ bytes: Int) -> String {
            AppsPage([AppUsage(identifier: "a", keys: keys, bytes: bytes)]) { _ in nil }.rows[0].subtitle
        }
        #expect(subtitle(10, 10_000).hasPrefix("10 settings · "))
        #expect(subtitle(1024, 10_000).hasPrefix("1024 of 1024 settings · "))
        #expect(subtitle(1000, 10_000).hasPrefix("1000 of 1024 settings · "))
        #expect(subtitle(10, 1 << 20).hasPrefix("10 settings · "))
    }

    @Test func `this device comes first, then who was seen last`() {
        let devices = [device("old", seen: 1), device("new", seen: 9), device("mine", seen: 5, this: true)]
        let page = DevicesPage(devices, isSignedIn: true, now: 10)
        #expect(page.rows.map(\.title) == ["mine", "new", "old"])
        #expect(page.rows.first?.subtitle == "This device")
    }

    @Test(arguments: [
        (0, "Not seen yet"), (100_000_000_001, "Seen within the last day"),
        (100_000_000_000, "Last seen: 2 January 1970"), (200_000_000_000, "Seen within the last day"),
    ])
    func `when another device was seen is said no more exactly than it is known`(time: UInt64, text: String) {
        let page = DevicesPage([device("phone", seen: time)], isSignedIn: true, now: 100_000_000_000 + 86_400_000_000)
        #expect(page.rows.map(\.subtitle) == [text])
    }

    @Test func `a name with markup is shown as it is, one with control characters without them`() {
        #expect(DevicesPage([device("<b>x</b> & y")], isSignedIn: true, now: 0).rows[0].title == "<b>x</b> & y")
        #expect(DevicesPage([device("a\nb\u{202E}c\u{0}")], isSignedIn: true, now: 0).rows[0].title == "a�b�c�")
        #expect(DevicesPage([device("")], isSignedIn: true, now: 0).rows[0].title == "Unnamed Device")
        #expect(DevicesPage([device("המחשב")], isSignedIn: true, now: 0).rows[0].title == "המחשב")
    }

    @Test func `a device's new name has 1 to 255 bytes`() {
        #expect(DevicesPage.flaw(ofName: "  ") != nil)
        #expect(DevicesPage.flaw(ofName: String(repeating: "x", count: 255)) == nil)
        #expect(DevicesPage.flaw(ofName: String(repeating: "ä", count: 128)) != nil)
    }

    @Test(arguments: [
        (0, 0, AppsPage.Level.usual), (921, 0, .usual), (922, 0, .nearlyFull), (1024, 0, .full), (9000, 0, .full),
        (1, 943_718, .usual), (1, 943_719, .nearlyFull), (1, 1_048_576, .full), (1, Int.max, .full),
    ])
    func `an app's bar warns from nine tenths of keys or bytes`(keys: Int, bytes: Int, level: AppsPage.Level) {
        let row = AppsPage([AppUsage(identifier: "a", keys: keys, bytes: bytes)]) { _ in nil }.rows[0]
        #expect(row.level == level)
        #expect((0...1).contains(row.share))
    }

    @Test func `two hundred apps are sorted by the names that people know`() {
        let apps = (0..<200).map { AppUsage(identifier: "org.example.App\($0)", application: "org.example.App\($0)") }
        let page = AppsPage(apps) { $0 == "org.example.App7" ? .init(name: "A first", icon: nil) : nil }
        #expect(page.rows.count == 200)
        #expect(page.rows.first?.title == "A first")
        let numbers = page.rows.dropFirst().compactMap { Int($0.title.drop { !$0.isNumber }) }
        #expect(numbers.count == 199 && numbers == numbers.sorted())
    }

    @Test(arguments: [("", 15), ("app1", 6), ("MUSIC", 1), ("example.App3", 1), ("nothing", 0)])
    func `apps are found by their names and identifiers`(text: String, count: Int) {
        let page = AppsPage((0..<15).map { AppUsage(identifier: "org.example.App\($0)") }) {
            $0 == "org.example.App3" ? .init(name: "Music", icon: nil) : nil
        }
        #expect(page.isLong)
        #expect(page.rows(matching: text).count == count)
    }

    @Test func `values are shown on one line, as JSON, and texts as they are`() {
        let page = StorePage([
            "a": .string("light"), "b": .array([.integer(1), .boolean(true)]), "c": .data([1, 2]), "d": .string(""),
        ])
        #expect(page.rows.map(\.subtitle) == ["light", "[1,true]", "2 bytes of data", "Empty text"])
        #expect(StorePage(["k": .string(Text(String(repeating: "x", count: 100_000)))]).rows[0].subtitle.count == 301)
    }

    @Test func `an earlier value says when, from which device and why it went`() throws {
        let entry = try #require(
            HistoryEntry([
                "value": .string("dark"), "when": .integer(1_000_000), "origin-device": .string("p"),
                "why": .string("merge"),
            ]))
        let row = HistoryPage([entry], devices: ["p": "phone"], now: 181_000_000).rows[0]
        #expect(row.title == "dark")
        #expect(row.subtitle == "3 minutes ago · from \u{2068}phone\u{2069} · changed on another device")
    }
}
