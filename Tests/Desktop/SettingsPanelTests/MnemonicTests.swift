// SPDX-License-Identifier: Apache-2.0

import DesktopTesting
import Testing

/// The letters that press something together with Alt.
struct MnemonicTests {
    /// A window, and the texts that can be in it at the same time. Those that exclude each other are together.
    struct Shown: Sendable, CustomTestStringConvertible {
        let window: String
        let texts: [[String]]
        var testDescription: String { window }

        init(_ window: String, _ texts: [String]...) { (self.window, self.texts) = (window, texts) }
    }

    private static let steps = [
        "Sync _Now", "_Try Now", "_New Password…", "_Resume", "What _Now…", "_Go On Without…",
        "E_nter Words…",
    ]

    private static let windows = [
        Shown("signed out", ["_Account"], ["_Devices"], ["A_pps"], ["_Sign In…", "_Try Again"]),
        Shown(
            "account", ["_Account"], ["_Devices"], ["A_pps"], steps, ["_Cancel", "Don't Wa_it"], ["Cop_y"],
            ["_Encrypt…", "Show Recovery _Words…"], ["Rep_lace the Words…"], ["Pause _Sync"], ["Switc_h…"],
            ["Sign _Out…"]),
        Shown("devices", ["_Account"], ["_Devices"], ["A_pps"], ["_Forget…"]),
        Shown("a store", ["_Forget…"], ["_Remove…"], ["Re_store"]),
        Shown(
            "sign in", ["_Cancel"], ["_Sign In"], ["Open _Browser"], ["Ch_oose…"], ["_Encrypt"], ["C_heck"]),
        Shown("enter words", ["_Cancel"], ["C_ontinue"]),
        Shown("recovery words", ["_Close"], ["_Show Again"]),
        Shown("recovery words of a new account", ["_Later"], ["C_ontinue"], ["_Show Again"]),
        Shown("test of recovery words", ["_Back"], ["_Done"]),
        Shown("which side", ["_Cancel"], ["Use _What Is There"], ["Use _This Device's"]),
        Shown("sign out", ["_Cancel"], ["Sign Out and _Remove"], ["Sign _Out"]),
        Shown("sign out without words", ["_Cancel"], ["_Leave Without Them"], ["Show Recovery _Words…"]),
        Shown(
            "other questions", ["_Cancel"],
            ["_Encrypt", "_Replace", "_Go On", "_Forget", "_Remove", "_Go There", "_Sign In Anyway"]),
    ]

    @Test(arguments: ["en"] + Translations.languages, windows)
    func `no letter presses two things of a window`(language: String, shown: Shown) throws {
        let translations = Translations.texts(in: language)
        var taken: [String: String] = [:]
        for texts in shown.texts {
            let letters = try texts.map { text in
                let text = language == "en" ? text : try #require(translations[text], "“\(text)” is not translated")
                return (try #require(text.firstMatch(of: /_(\p{L})/)?.1.lowercased(), "“\(text)” has none"), text)
            }
            for (letter, text) in letters {
                #expect(taken[letter] == nil, "“\(text)” and “\(taken[letter] ?? "")” both have \(letter)")
            }
            taken.merge(letters) { first, _ in first }
        }
    }

    @Test func `every text with a letter is in one of the windows above`() {
        let listed = Set(Self.windows.flatMap { $0.texts.flatMap(\.self) })
        let all = Set(Translations.texts(in: "de").keys.filter { $0.contains(/_\p{L}/) })
        #expect(all == listed)
    }
}
