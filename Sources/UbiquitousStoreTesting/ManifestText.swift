// SPDX-License-Identifier: Apache-2.0

/// An app's manifest for a test.
public struct ManifestText: Sendable {
    /// `com.apple.developer.ubiquity-kvstore-identifier`.
    public var identifier: String?
    /// `application-identifier`.
    public var application: String?
    /// `com.apple.security.application-groups`.
    public var groups: [String] = []
    /// `com.apple.developer.team-identifier`.
    public var team: String?
    /// `org.example.UbiquitousStore.local-keys`.
    public var localKeys: [String]
    /// `org.example.UbiquitousStore.executables`.
    public var executables: [String]
    /// `org.example.UbiquitousStore.ubiquitous-defaults`.
    public var ubiquitousDefaults: [String] = []

    /// Makes a manifest of an app. `nil` omits a key.
    public init(
        _ identifier: String?, application: String?, team: String? = nil, localKeys: [String] = [],
        executables: [String] = []
    ) {
        self.identifier = identifier
        self.application = application
        self.team = team
        self.localKeys = localKeys
        self.executables = executables
    }

    /// Makes a manifest of an app whose id equals its store's identifier.
    public init(_ identifier: String, localKeys: [String] = []) {
        self.init(identifier, application: identifier, localKeys: localKeys)
    }

    /// The XML property list.
    public var xml: String {
        var entries = ""
        func add(_ key: String, _ value: String?) {
            guard let value else { return }
            entries += "<key>\(key)</key><string>\(value)</string>\n"
        }
        func addList(_ key: String, _ values: [String], in space: String = "org.example.UbiquitousStore") {
            if values.isEmpty { return }
            let strings = values.map { "<string>\($0)</string>" }.joined()
            entries += "<key>\(space).\(key)</key><array>\(strings)</array>\n"
        }
        add("com.apple.developer.ubiquity-kvstore-identifier", identifier)
        add("application-identifier", application)
        add("com.apple.developer.team-identifier", team)
        addList("application-groups", groups, in: "com.apple.security")
        addList("local-keys", localKeys)
        addList("executables", executables)
        addList("ubiquitous-defaults", ubiquitousDefaults)
        return """
            <?xml version="1.0" encoding="UTF-8"?>
            <plist version="1.0"><dict>
            \(entries)</dict></plist>
            """
    }
}
