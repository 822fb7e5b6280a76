// SPDX-License-Identifier: Apache-2.0

// Apple's class, for code written for it. Apple's documentation of Foundation describes each member; comments here
// cover what it leaves open and where this class differs. docs/defaults-members.md compares them member by member.

public import Foundation
internal import Glibc
internal import ManagedDefaults
internal import PlainText
internal import PropertyList
internal import StoreBus
internal import Synchronization
internal import UbiquitousStore

/// An app's settings of one user, as in Apple's Foundation.
///
/// Reads come from memory. A write changes memory at once and is sent to the service without waiting. Without a
/// service, it is kept in a file until there is one. The class is thread-safe.
open class UserDefaults: NSObject, @unchecked Sendable {
    // @unchecked because NSObject isn't Sendable; the properties are, and never change.
    let box: SearchBox
    /// Volatile domains under names of the app's choice, which no search includes.
    private let volatile = Mutex<[String: [Text: Value]]>([:])

    /// The app's settings. There is one such object per process.
    ///
    /// Its own domain is the first of these that exists: that of ``use(domain:bus:)``, the environment variable
    /// `UBIQUITOUS_STORE_DOMAIN`, the `application-identifier` of the installed manifest that names this program, the
    /// app id of the sandbox, and the program's file name.
    open class var standard: UserDefaults { shared }

    private static let shared = UserDefaults()

    /// Sets the app's own domain and its bus. Call it before the first use of any object.
    ///
    /// - Parameters:
    ///   - domain: 1 to 255 bytes of UTF-8; `nil` leaves it to the environment and the manifests.
    ///   - bus: `system`, `session` or an address; `nil` leaves it to the environment.
    /// - Returns: false if an object was already in use; nothing changes then.
    @discardableResult
    public class func use(domain: String?, bus: String? = nil) -> Bool { ProcessDefaults.use(domain: domain, bus: bus) }

    /// The name of the app's own domain, for ``removePersistentDomain(forName:)`` and the like. On Linux, Foundation's
    /// `Bundle.main.bundleIdentifier` is `nil`.
    public class var domain: String { ProcessDefaults.place.domain.string }

    /// Creates an object with the app's settings, as ``standard`` has them.
    public override convenience init() { self.init(.own) }

    /// Creates an object with the settings of a domain that several programs share.
    ///
    /// - Parameter suitename: the domain; `nil` is the app's own.
    /// - Returns: `nil` for the name of the app's own domain, the global or a volatile one, and for an invalid name.
    public init?(suiteName suitename: String?) {
        guard let settings = Settings(suiteName: suitename) else { return nil }
        box = settings.box
        super.init()
    }

    /// Creates an object with the app's settings of a user. Only root may use another user's, if that user has data on
    /// this device. Writes for another user that wait for a service are lost when the process ends.
    ///
    /// - Returns: `nil` for another user if the process isn't root's, and for an unknown name.
    public convenience init?(user username: String) { self.init(user: username, ProcessDefaults.place) }

    /// Creates an object for a user's domain on a given bus, for tests.
    package convenience init?(user username: String, domain: String, bus: String) {
        self.init(user: username, ProcessDefaults.Place(domain: Text(domain), bus: bus))
    }

    private convenience init?(user username: String, _ place: ProcessDefaults.Place) {
        if username == NSUserName() {
            self.init(Settings(place.domain, place))
            return
        }
        guard geteuid() == 0, let uid = getpwnam(username)?.pointee.pw_uid else { return nil }
        var place = place
        (place.uid, place.store) = (uid, nil)
        self.init(Settings(place.domain, place))
    }

    /// Creates an object for a domain on a given bus, for tests and for programs that use several domains.
    package convenience init(domain: String, bus: String, outboxes: String? = nil) {
        self.init(Settings(Text(domain), ProcessDefaults.Place(domain: Text(domain), bus: bus, outboxes: outboxes)))
    }

    /// Creates an object with the given settings.
    ///
    /// The other initializers call this one. It is public only because the designated initializers of a class that
    /// apps can subclass have to be; apps have nothing to call it with.
    public init(_ settings: Settings) {
        box = settings.box
        super.init()
    }

    /// The settings of an object. Only this library makes them.
    public struct Settings: Sendable {
        let box: SearchBox

        fileprivate init(_ own: Text, _ place: ProcessDefaults.Place) {
            let process = DefaultsProcesses.on(bus: place.bus, uid: place.uid ?? geteuid(), outboxes: place.outboxes)
            if own == place.domain, let store = place.store {
                process.declare(own, store: store, keys: place.ubiquitous)
            }
            box = SearchBox(own: own, process: process)
        }

        fileprivate init?(suiteName: String?) {
            guard let suiteName else {
                self = .own
                return
            }
            let place = ProcessDefaults.place
            guard DomainName.problem(suiteName) == nil, Text(suiteName) != place.domain,
                ![globalDomain, argumentDomain, registrationDomain].contains(suiteName)
            else { return nil }
            self.init(Text(suiteName), place)
        }

        fileprivate static var own: Settings {
            let place = ProcessDefaults.place
            return Settings(place.domain, place)
        }
    }

    // MARK: Registering

    /// Adds values for keys that no other layer has, in all objects of the process. They are never stored.
    open func register(defaults registrationDictionary: [String: Any]) {
        box.process.setVolatile(.registration, merging: true, checked(registrationDictionary))
    }

    // MARK: Getting values

    /// Returns the value of a key, as NSNumber, String, Data, Date, an array or a dictionary; `nil` if there is none.
    open func object(forKey defaultName: String) -> Any? { box.value(defaultName)?.object }

    /// Returns the string of a key, or a number as text with the fewest digits that represent it; `nil` otherwise.
    open func string(forKey defaultName: String) -> String? { box.value(defaultName)?.defaultsString }

    /// Returns the array of a key; `nil` if there is no value or one of another type.
    open func array(forKey defaultName: String) -> [Any]? {
        if case .array(let values)? = box.value(defaultName) { values.map(\.object) } else { nil }
    }

    /// Returns the dictionary of a key; `nil` if there is no value or one of another type.
    open func dictionary(forKey defaultName: String) -> [String: Any]? {
        if case .dictionary(let values)? = box.value(defaultName) { values.objects } else { nil }
    }

    /// Returns the data of a key; `nil` if there is no value or one of another type.
    open func data(forKey defaultName: String) -> Data? {
        if case .data(let bytes)? = box.value(defaultName) { Data(bytes) } else { nil }
    }

    /// Returns the array of strings of a key; `nil` if there is none, or if an element is no string.
    open func stringArray(forKey defaultName: String) -> [String]? { box.value(defaultName)?.defaultsStrings }

    /// Returns the integer of a key, or the number with which a string begins; 0 if there is none.
    open func integer(forKey defaultName: String) -> Int { box.value(defaultName)?.defaultsInteger ?? 0 }

    /// Returns the number of a key, or the one with which a string begins; 0 if there is none.
    open func float(forKey defaultName: String) -> Float { box.value(defaultName)?.defaultsFloat ?? 0 }

    /// Returns the number of a key, or the one with which a string begins; 0 if there is none.
    open func double(forKey defaultName: String) -> Double { box.value(defaultName)?.defaultsDouble ?? 0 }

    /// Returns the Boolean of a key. Numbers other than 0 and strings such as "YES" are true; false if there is none.
    open func bool(forKey defaultName: String) -> Bool { box.value(defaultName)?.defaultsBool ?? false }

    /// Returns the URL of a key: one that was set, or the file at a path, in which `~` is expanded.
    open func url(forKey defaultName: String) -> URL? { box.value(defaultName)?.defaultsURL }

    /// Returns all keys and values of all layers that this object searches.
    open func dictionaryRepresentation() -> [String: Any] { box.read { $0.found.mapValues(\.value) }.objects }

    // MARK: Setting values

    /// Sets a property list; `nil` removes.
    ///
    /// A value that is no property list or is too large, and a key of more than 512 UTF-16 code units, are logged and
    /// ignored; ``changes`` reports the error.
    open func set(_ value: Any?, forKey defaultName: String) {
        if let url = value as? URL { return set(url, forKey: defaultName) }
        store(defaultName) { try value.map { try Value(object: $0) } }
    }

    /// Sets an integer.
    open func set(_ value: Int, forKey defaultName: String) { store(defaultName) { .integer(Int64(value)) } }

    /// Sets a number.
    open func set(_ value: Float, forKey defaultName: String) { store(defaultName) { .real(Double(value)) } }

    /// Sets a number.
    open func set(_ value: Double, forKey defaultName: String) { store(defaultName) { .real(value) } }

    /// Sets a Boolean.
    open func set(_ value: Bool, forKey defaultName: String) { store(defaultName) { .boolean(value) } }

    /// Sets a URL; `nil` removes. A file URL is stored as its path, with `~` for the home directory.
    open func set(_ url: URL?, forKey defaultName: String) {
        store(defaultName) { try url.map { try Value(defaultsURL: $0, home: NSHomeDirectory()) } }
    }

    /// Removes the value of a key from the object's own domain. If another layer has a
    /// value, that one becomes effective.
    open func removeObject(forKey defaultName: String) { store(defaultName) { nil } }

    private func store(_ name: String, _ value: () throws -> Value?) {
        do {
            try write([Text(name): try value()])
        } catch {
            refuse(name, error)
        }
    }

    /// Makes changes in the object's own domain.
    ///
    /// - Parameter isWhole: whether to make all changes or none. Keys that roam are in the app's store, so these and the
    ///   others succeed or fail apart.
    func write(_ changes: Changes, isWhole: Bool = false, done: (@Sendable ((any Error)?) -> Void)? = nil) throws {
        for (key, value) in changes {
            do {
                _ = try PropertyList.Key(key.string, limit: Limits.domain.keyLength)
                try value?.validate(.domain)
            } catch {
                throw UbiquitousStoreError(refusing: error)
            }
        }
        // The service says which keys roam, so this waits for its answer.
        if box.process.mayRoam(box.own) { box.becomeReady() }
        if try box.process.writeRoaming(box.own, changes, isWhole: isWhole, done: done) { postDidChange() }
    }

    func refuse(_ name: String, _ error: any Error) {
        let (key, value) = (Text(name), box.value(name))
        let code = (error as? UbiquitousStoreError ?? UbiquitousStoreError(refusing: error)).code
        if code == .quotaExceeded { DefaultsProcess.queue.async { Self.postSizeLimitExceeded() } }
        logDefaults([key], "was not set: \(error)")
        let change = SearchList.Change(key: key, old: value, new: value)
        box.tell(DefaultsChange(reason: ChangeReason.quotaViolation, changes: [change], error: error))
    }

    // MARK: Suites

    /// The names that ``addSuite(named:)`` has refused and logged.
    private static let refusedSuites = Mutex<Set<String>>([])

    /// Also searches another domain, after the object's own and the suites added before. This object never writes to
    /// it.
    open func addSuite(named suiteName: String) {
        if let problem = DomainName.problem(suiteName) {
            let isFirst = Self.refusedSuites.withLock { $0.insert(suiteName).inserted }
            if isFirst { logDefaults("\"\(suiteName.cleaned(atMost: 100))\" is not searched: \(problem).") }
            return
        }
        guard Text(suiteName) != box.own, suiteName != Self.globalDomain else {
            return
        }
        box.process.search(Text(suiteName), true, box)
    }

    /// Stops searching a domain.
    open func removeSuite(named suiteName: String) {
        box.process.search(Text(suiteName), false, box)
    }

    // MARK: Volatile domains

    /// The names of the volatile domains: those of arguments and of registered values, and those set on this object.
    open var volatileDomainNames: [String] {
        [Self.argumentDomain, Self.registrationDomain] + volatile.withLock { $0.keys.sorted() }
    }

    /// Returns the contents of a volatile domain; empty if there is none of that name.
    open func volatileDomain(forName domainName: String) -> [String: Any] {
        if let layer = Self.volatileLayer(domainName) { return box.process.volatile(layer).objects }
        return volatile.withLock { $0[domainName] ?? [:] }.objects
    }

    /// Replaces the contents of a volatile domain. Only those of arguments and of registered values are searched.
    open func setVolatileDomain(_ domain: [String: Any], forName domainName: String) {
        let values = checked(domain)
        if let layer = Self.volatileLayer(domainName) {
            if box.process.setVolatile(layer, values) { postDidChange() }
        } else {
            let former = volatile.withLock { $0.updateValue(values, forKey: domainName) }
            if former != values { postDidChange() }
        }
    }

    /// Empties a volatile domain.
    open func removeVolatileDomain(forName domainName: String) {
        if Self.volatileLayer(domainName) != nil { return setVolatileDomain([:], forName: domainName) }
        if volatile.withLock({ $0.removeValue(forKey: domainName) }) != nil { postDidChange() }
    }

    private static func volatileLayer(_ name: String) -> SearchList.Layer? {
        name == argumentDomain ? .argument : name == registrationDomain ? .registration : nil
    }

    // MARK: Persistent domains

    /// Returns the contents of a domain's layer for every host; `nil` if it is empty.
    open func persistentDomain(forName domainName: String) -> [String: Any]? {
        guard let domain = persistent(domainName) else { return nil }
        box.process.awaitDomains([domain])
        let values = box.process.contents(of: .domain(domain))
        return values.isEmpty ? nil : values.objects
    }

    /// Replaces the contents of a domain's layer for every host, atomically.
    open func setPersistentDomain(_ domain: [String: Any], forName domainName: String) {
        guard let name = persistent(domainName) else { return }
        box.process.awaitDomains([name])
        if box.process.replace(.domain(name), by: checked(domain)) { postDidChange() }
    }

    /// Empties a domain's layer for every host.
    open func removePersistentDomain(forName domainName: String) { setPersistentDomain([:], forName: domainName) }

    /// Returns the names of the user's domains that have values, sorted. Waits for the service for at most a second;
    /// without a service, the result has only the domains that this process knows.
    open func persistentDomainNames() -> [Any] { box.process.domainNames() as [Any] }

    private func persistent(_ name: String) -> Text? {
        if Self.volatileLayer(name) != nil || DomainName.problem(name) != nil {
            logDefaults("\"\(name)\" names no domain that is stored; nothing was done.")
            return nil
        }
        return Text(name)
    }

    /// Converts objects. Reports and omits those that are no property lists or have an invalid key.
    private func checked(_ objects: [String: Any]) -> [Text: Value] {
        var values: [Text: Value] = [:]
        for (name, object) in objects {
            do {
                let key = try PropertyList.Key(name, limit: Limits.domain.keyLength)
                let value =
                    try (object as? URL).map { try Value(defaultsURL: $0, home: NSHomeDirectory()) }
                    ?? Value(object: object)
                try value.validate(.domain)
                values[key.text] = value
            } catch {
                refuse(name, error)
            }
        }
        return values
    }

    // MARK: Managed keys

    /// Returns whether an administrator forces or locks a key.
    open func objectIsForced(forKey key: String) -> Bool { box.read { $0.isForced(Text(key)) } }

    /// Returns whether an administrator forces or locks a key of a domain, whether or not this object searches it.
    open func objectIsForced(forKey key: String, inDomain domain: String) -> Bool {
        guard DomainName.problem(domain) == nil else { return false }
        box.process.awaitDomains([Text(domain)])
        let managed = box.process.managed(Text(domain))
        return managed.forced[Text(key)] != nil || managed.locked.contains(Text(key))
    }

    // MARK: Deprecated

    /// Waits for at most a second until everything that was set is on disk. A program needs it only if it may be killed
    /// and must not lose its last writes.
    ///
    /// - Returns: false if some write is neither on the service's disk nor in the file that keeps writes for it.
    @discardableResult
    open func synchronize() -> Bool { Settlement(process: box.process).synchronize(box.own) }

    /// Does nothing.
    open class func resetStandardUserDefaults() {}

    // MARK: Names

    /// The name of the domain of the command line's arguments.
    public class var argumentDomain: String { "NSArgumentDomain" }
    /// The name of the domain that every program searches.
    public class var globalDomain: String { "NSGlobalDomain" }
    /// The name of the domain of registered values.
    public class var registrationDomain: String { "NSRegistrationDomain" }
}

extension UserDefaults {
    /// Posted when this process changes a setting, on the thread that changes it. The notification's object is the
    /// `UserDefaults` that was used.
    public class var didChangeNotification: NSNotification.Name {
        NSNotification.Name("NSUserDefaultsDidChangeNotification")
    }
    /// Posted when a write was reverted because the domain would exceed 4 MiB or 16,384 keys, or refused because the
    /// value has more than 1 MiB.
    public class var sizeLimitExceededNotification: NSNotification.Name {
        NSNotification.Name("com.apple.CFPreferences.byteCountLimitReached")
    }
    /// Posted once per process, when it sets a key that roams and the user isn't signed in, so that the value stays on
    /// this device.
    public class var noCloudAccountNotification: NSNotification.Name {
        NSNotification.Name("NSUbiquitousUserDefaultsNoCloudAccountNotification")
    }
    /// Posted when keys of the app's domain that roam have other values because the user has signed in, signed out or
    /// switched accounts.
    public class var didChangeCloudAccountsNotification: NSNotification.Name {
        NSNotification.Name("NSUbiquitousUserDefaultsDidChangeAccountsNotification")
    }
    /// Posted when the account's values have arrived for the first time, if keys of the app's domain roam.
    public class var completedInitialCloudSyncNotification: NSNotification.Name {
        NSNotification.Name("NSUbiquitousUserDefaultsCompletedInitialSyncNotification")
    }
}
