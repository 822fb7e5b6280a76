// SPDX-License-Identifier: Apache-2.0

internal import AppManifest
internal import Foundation
internal import Glibc
internal import ManagedDefaults
internal import PropertyList
internal import Synchronization
internal import UbiquitousStore

/// What the process itself contributes: its own domain, its arguments, and what the library registers.
enum ProcessDefaults {
    /// The process's own domain, and the bus.
    struct Place: Sendable {
        let domain: Text
        let bus: String
        /// The directory of the outboxes; `nil` for the user's own.
        var outboxes: String?
        /// The user whose settings these are; `nil` for the process's user.
        var uid: UInt32?
        /// The path of the program: as the manifest names it, because the service follows no links.
        var program = ProcessDefaults.program
        /// The store of the keys that roam; `nil` if none roam.
        var store: String?
        /// The keys that the manifest makes roam.
        var ubiquitous = KeyPatterns.none
    }

    private struct Choice {
        var domain: String?
        var bus: String?
        var place: Place?
    }

    private static let choice = Mutex(Choice())

    /// Sets the process's own domain and its bus; returns false if they are in use already.
    static func use(domain: String?, bus: String?) -> Bool {
        choice.withLock { choice in
            guard choice.place == nil else { return false }
            (choice.domain, choice.bus) = (domain, bus)
            return true
        }
    }

    /// The process's own domain, which is found at its first use.
    static var place: Place {
        choice.withLock { choice in
            if let place = choice.place { return place }
            let place = find(
                domain: choice.domain, bus: choice.bus, program: program,
                environment: ProcessInfo.processInfo.trustedEnvironment)
            choice.place = place
            return place
        }
    }

    /// Finds the domain: the app's, or else the environment's, the manifest's, the flatpak's, or the program's name.
    static func find(
        domain: String?, bus: String?, program: String, environment: [String: String],
        manifestDirectories: [String]? = nil
    ) -> Place {
        func named(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        let directories = manifestDirectories ?? InstalledManifests.directories { environment[$0] }
        let manifest = InstalledManifests.manifest(ofProgram: program, in: directories)
        let name = program.split(separator: "/").last.map(String.init) ?? ""
        let candidates = [
            domain, named("UBIQUITOUS_STORE_DOMAIN"), manifest?.applicationIdentifier, named("FLATPAK_ID"), name,
        ].compactMap { $0 }
        let own = candidates.first(where: isDomain)
        var place = Place(
            domain: Text(own ?? "program"), bus: bus ?? named("UBIQUITOUS_STORE_BUS") ?? "system",
            program: manifest.flatMap { InstalledManifests.name(ofProgram: program, in: $0) } ?? program)
        if let manifest, manifest.applicationIdentifier == own {
            place.store = manifest.identifier
            place.ubiquitous = KeyPatterns(manifest.ubiquitousDefaults.map { Text($0) })
        }
        return place
    }

    /// Whether a name can be that of an app's own domain.
    static func isDomain(_ name: String) -> Bool {
        DomainName.problem(name) == nil && name != ManagedFile.globalDomain.string
    }

    /// Whether this is a flatpak, which doesn't see the installed manifests.
    static let isSandboxed = access("/.flatpak-info", F_OK) == 0

    static var program: String { RunningProgram.path ?? CommandLine.arguments.first ?? "" }

    // MARK: Volatile domains

    /// Returns the settings on the command line, as Foundation reads them: `-fontSize 14`.
    static func arguments() -> [Text: Value] {
        let objects = Foundation.UserDefaults().volatileDomain(forName: Foundation.UserDefaults.argumentDomain)
        return values(objects)
    }

    /// Returns what is registered in every process: the user's languages and region, from the locale's variables.
    static func registered(_ environment: [String: String] = ProcessInfo.processInfo.environment) -> [Text: Value] {
        func named(_ names: String...) -> String? {
            names.lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
        }
        let locale = identifier(named("LC_ALL", "LC_MESSAGES", "LANG") ?? "C")
        let listed = (named("LANGUAGE") ?? "").split(separator: ":").map { identifier(String($0)) }
        let languages = (listed.isEmpty ? [locale] : listed).map { $0.replacing("_", with: "-") }
        return ["AppleLocale": .string(Text(locale)), "AppleLanguages": .array(languages.map { .string(Text($0)) })]
    }

    /// Returns `de_DE` for `de_DE.UTF-8@euro`.
    private static func identifier(_ locale: String) -> String {
        let name = String(locale.prefix { $0 != "." && $0 != "@" })
        return name == "C" || name == "POSIX" || name.isEmpty ? "en_US" : name
    }

    /// Returns the property lists by key, without other objects.
    static func values(_ objects: [String: Any]) -> [Text: Value] {
        var values: [Text: Value] = [:]
        for (key, object) in objects { values[Text(key)] = try? Value(object: object) }
        return values
    }
}

extension ExitWork {
    /// Keeps unacknowledged writes.
    static let settlement = ExitWork {
        for process in DefaultsProcesses.every { _ = Settlement(process: process).settle() }
    }
}
