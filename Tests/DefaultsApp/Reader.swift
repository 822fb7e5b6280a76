// SPDX-License-Identifier: Apache-2.0

// The settings of a feed reader, as its author wrote them for macOS, without `import SwiftUI` and `@objc dynamic`.

import Foundation

enum SortOrder: String, CaseIterable {
    case newestFirst, oldestFirst, byFeed
}

enum Appearance: Int {
    case system, light, dark
}

extension UserDefaults {
    private enum Keys {
        static let refreshInterval = "RefreshInterval"
        static let mutedWords = "MutedWords"
        static let lastRefresh = "LastRefresh"
        static let downloadFolder = "DownloadFolder"
        static let feedState = "FeedState"
    }

    var refreshInterval: TimeInterval {
        get { double(forKey: Keys.refreshInterval) }
        set { set(newValue, forKey: Keys.refreshInterval) }
    }

    var mutedWords: [String] {
        get { stringArray(forKey: Keys.mutedWords) ?? [] }
        set { set(newValue, forKey: Keys.mutedWords) }
    }

    var lastRefresh: Date? {
        get { object(forKey: Keys.lastRefresh) as? Date }
        set { set(newValue, forKey: Keys.lastRefresh) }
    }

    var downloadFolder: URL? {
        get { url(forKey: Keys.downloadFolder) }
        set { set(newValue, forKey: Keys.downloadFolder) }
    }

    var feedState: [String: [String: Any]] {
        get { dictionary(forKey: Keys.feedState) as? [String: [String: Any]] ?? [:] }
        set { set(newValue, forKey: Keys.feedState) }
    }
}

struct ReaderSettings {
    @AppStorage("SortOrder") var sortOrder: SortOrder = .newestFirst
    @AppStorage("Appearance") var appearance: Appearance = .system
    @AppStorage("ShowsUnreadOnly") var showsUnreadOnly = false
    @AppStorage("SelectedFeed") var selectedFeed: String?
    @AppStorage("FontScale", store: UserDefaults(suiteName: "org.example.reader.shared")) var fontScale = 1.0
}

final class ReaderModel: NSObject {
    let defaults = UserDefaults.standard
    let settings = ReaderSettings()
    private var observations: [NSKeyValueObservation] = []
    private var changeObserver: NSObjectProtocol?
    private(set) var changes = 0
    var log: (String) -> Void = { _ in }

    static func registerDefaults() {
        UserDefaults.standard.register(defaults: [
            "RefreshInterval": 1800.0,
            "MutedWords": ["sponsored"],
            "ShowsUnreadOnly": true,
        ])
    }

    func start() {
        observations.append(
            defaults.observe(\.refreshInterval, options: [.initial, .old, .new]) { [weak self] defaults, change in
                self?.log("interval \(Int(change.oldValue ?? -1)) \(Int(change.newValue ?? -1))")
            })
        observations.append(
            defaults.observe(\.mutedWords, options: .new) { [weak self] _, change in
                self?.log("muted \(change.newValue?.joined(separator: ",") ?? "none")")
            })
        changeObserver = NotificationCenter.default.addObserver(
            forName: UserDefaults.didChangeNotification, object: defaults, queue: nil
        ) { [weak self] _ in
            self?.changes += 1
        }
    }

    func stop() {
        observations.forEach { $0.invalidate() }
        observations.removeAll()
        if let changeObserver { NotificationCenter.default.removeObserver(changeObserver) }
    }

    func mute(_ word: String) {
        defaults.mutedWords.append(word)
    }

    func finishRefresh(of feed: String, unread: Int) {
        defaults.lastRefresh = Date(timeIntervalSinceReferenceDate: 0)
        defaults.feedState[feed] = ["unread": unread, "failed": false]
        settings.selectedFeed = feed
    }

    func describe() -> String {
        let unread = defaults.feedState.mapValues { $0["unread"] as? Int ?? 0 }.values.reduce(0, +)
        let interval =
            defaults.objectIsForced(forKey: "RefreshInterval") ? "forced" : "\(Int(defaults.refreshInterval))"
        return [
            settings.sortOrder.rawValue, "\(settings.appearance)", "\(settings.showsUnreadOnly)",
            settings.selectedFeed ?? "no feed", "\(settings.fontScale)", interval,
            defaults.mutedWords.joined(separator: ","), defaults.lastRefresh == nil ? "never" : "once",
            defaults.downloadFolder?.lastPathComponent ?? "no folder", "\(unread)",
        ].joined(separator: " ")
    }

    func resetToDefaults() {
        // On Linux a program has no bundle identifier.
        defaults.removePersistentDomain(forName: Bundle.main.bundleIdentifier ?? UserDefaults.domain)
    }
}

func runReader(_ words: [String], say: @escaping (String) -> Void) {
    ReaderModel.registerDefaults()
    let model = ReaderModel()
    switch words.first {
    case "change":
        model.start()
        model.settings.sortOrder = .byFeed
        model.settings.appearance = .dark
        model.settings.showsUnreadOnly = false
        model.settings.fontScale = 1.25
        model.mute("advert")
        model.defaults.downloadFolder = FileManager.default.homeDirectoryForCurrentUser.appendingPathComponent("Feeds")
        model.finishRefresh(of: "news", unread: 3)
        say("\(model.changes)")
        model.stop()
    case "follow":
        model.log = say
        model.start()
        withExtendedLifetime(model) { dispatchMain() }
    case "reset": model.resetToDefaults()
    default: say(model.describe())
    }
}
