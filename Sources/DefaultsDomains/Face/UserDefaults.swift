// SPDX-License-Identifier: Apache-2.0

// Apple's class, for code that was written for it. What each member does is Apple's documentation of Foundation; where
// it is silent or differs, it says so here.

public import Foundation
internal import Glibc
internal import ManagedDefaults
internal import PropertyList
internal import Synchronization
internal import UbiquitousStore

/// A person's settings of an app, as in Apple's Foundation.
///
/// Reads come from memory. A write is in memory at once; it is sent to the service without waiting, and is kept in a
/// file where there is none. May be used from any thread.
open class UserDefaults: NSObject, @unchecked Sendable {
    // @unchecked because NSObject isn't Sendable; what is here is, and never changes.
    let box: SearchBox
    /// Dictionaries of other names than the process's, which nothing searches.
    private let volatile = Mutex<[String: [Text: Value]]>([:])

    /// The app's settings: one object for the process.
    ///
    /// Its own domain is, in this order, that of ``use(domain:bus:)``, the environment variable
    /// `UBIQUITOUS_STORE_DOMAIN`, the application-identifier of the installed manifest that names this program, that of
    /// the sandbox, or the program's name.
    open class var standard: UserDefaults { shared }

    private static let shared = UserDefaults()

    /// Says which domain is the app's own, and on which bus; before the first use of any object, and only then.
    ///
    /// - Parameters:
    ///   - domain: 1 to 255 bytes of UTF-8; `nil` leaves it to the environment and the manifests.
    ///   - bus: `system`, `session` or an address; `nil` leaves it to the environment.
    /// - Returns: false if an object was in use before: nothing has changed then.
    @discardableResult
    public class func use(domain: String?, bus: String? = nil) -> Bool { ProcessDefaults.use(domain: domain, bus: bus) }

    /// The app's settings, as ``standard`` has them.
    public override convenience init() {
        let place = ProcessDefaults.place
        self.init(place.domain, place)
    }

    /// The settings of a domain that several programs share.
    ///
    /// - Parameter suitename: the domain; `nil` is the app's own.
    /// - Returns: `nil` for the app's own domain, the global one, volatile ones, and what can't be a domain's name.
    public convenience init?(suiteName suitename: String?) {
        let place = ProcessDefaults.place
        guard let suitename else {
            self.init(place.domain, place)
            return
        }
        guard DomainName.problem(suitename) == nil, Text(suitename) != place.domain,
            ![Self.globalDomain, Self.argumentDomain, Self.registrationDomain].contains(suitename)
        else { return nil }
        self.init(Text(suitename), place)
    }

    /// The app's settings of a person. Only root has those of others, of people with data on this device; what is set
    /// for them while the service is away is lost when the process ends.
    public convenience init?(user username: String) { self.init(user: username, ProcessDefaults.place) }

    /// The same of a domain on a bus, for tests.
    package convenience init?(user username: String, domain: String, bus: String) {
        self.init(user: username, ProcessDefaults.Place(domain: Text(domain), bus: bus))
    }

    private convenience init?(user username: String, _ place: ProcessDefaults.Place) {
        if username == NSUserName() {
            self.init(place.domain, place)
            return
        }
        guard geteuid() == 0, let uid = getpwnam(username)?.pointee.pw_uid else { return nil }
        var place = place
        (place.uid, place.store) = (uid, nil)
        self.init(place.domain, place)
    }

    /// The settings of a domain on a bus, for tests and for programs that look at several.
    package convenience init(domain: String, bus: String, outboxes: String? = nil) {
        self.init(Text(domain), ProcessDefaults.Place(domain: Text(domain), bus: bus, outboxes: outboxes))
    }

    init(_ own: Text, _ place: ProcessDefaults.Place) {
        let process = DefaultsProcesses.on(bus: place.bus, uid: place.uid ?? geteuid(), outboxes: place.outboxes)
        if own == place.domain, let store = place.store {
            process.declare(own, store: store, keys: place.ubiquitous)
        }
        box = SearchBox(own: own, process: process)
        super.init()
    }

    // MARK: Registering

    /// Adds values for keys that nothing else has a value for, in all objects of the process. They are never stored.
    open func register(defaults registrationDictionary: [String: Any]) {
        box.process.setVolatile(.registration, merging: true, checked(registrationDictionary))
    }

    // MARK: Getting values

    /// The value of a key, as NSNumber, String, Data, Date, an array or a dictionary; `nil` if there is none.
    open func object(forKey defaultName: String) -> Any? { box.value(defaultName)?.object }

    /// The string of a key; a number as text; `nil` if there is neither.
    open func string(forKey defaultName: String) -> String? { box.value(defaultName)?.defaultsString }

    /// The array of a key; `nil` if there is none.
    open func array(forKey defaultName: String) -> [Any]? {
        if case .array(let values)? = box.value(defaultName) { values.map(\.object) } else { nil }
    }

    /// The dictionary of a key; `nil` if there is none.
    open func dictionary(forKey defaultName: String) -> [String: Any]? {
        if case .dictionary(let values)? = box.value(defaultName) { values.objects } else { nil }
    }

    /// The data of a key; `nil` if there is none.
    open func data(forKey defaultName: String) -> Data? {
        if case .data(let bytes)? = box.value(defaultName) { Data(bytes) } else { nil }
    }

    /// The array of strings of a key; `nil` if there is none, or something else is in it.
    open func stringArray(forKey defaultName: String) -> [String]? { box.value(defaultName)?.defaultsStrings }

    /// The integer of a key; of a string what it begins with; 0 if there is none.
    open func integer(forKey defaultName: String) -> Int { box.value(defaultName)?.defaultsInteger ?? 0 }

    /// The number of a key; of a string what it begins with; 0 if there is none.
    open func float(forKey defaultName: String) -> Float { box.value(defaultName)?.defaultsFloat ?? 0 }

    /// The number of a key; of a string what it begins with; 0 if there is none.
    open func double(forKey defaultName: String) -> Double { box.value(defaultName)?.defaultsDouble ?? 0 }

    /// The Boolean of a key; true for numbers other than 0 and strings such as "YES"; false if there is none.
    open func bool(forKey defaultName: String) -> Bool { box.value(defaultName)?.defaultsBool ?? false }

    /// The URL of a key: one that was set, or the file at a path, in which `~` is expanded.
    open func url(forKey defaultName: String) -> URL? { box.value(defaultName)?.defaultsURL }

    /// Every key that a search finds, with its value.
    open func dictionaryRepresentation() -> [String: Any] { box.read { $0.found.mapValues(\.value) }.objects }

    // MARK: Setting values

    /// Sets a property list; `nil` removes.
    ///
    /// What is no property list, or too large, or has a key that is too long, is logged and ignored, and told by
    /// ``changes`` with the error.
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

    /// Sets a URL: a file's as its path, with `~` for the home. `nil` removes.
    open func set(_ url: URL?, forKey defaultName: String) {
        store(defaultName) { try url.map { try Value(defaultsURL: $0, home: NSHomeDirectory()) } }
    }

    /// Removes the value of a key in the object's own domain; what another layer has shows then.
    open func removeObject(forKey defaultName: String) { store(defaultName) { nil } }

    private func store(_ name: String, _ value: () throws -> Value?) {
        do {
            try write([Text(name): try value()])
        } catch {
            refuse([name], error)
        }
    }

    /// Makes changes in the object's own domain.
    ///
    /// - Parameter isWhole: whether these go all or nothing.
    func write(_ changes: Changes, isWhole: Bool = false, done: (@Sendable ((any Error)?) -> Void)? = nil) throws {
        for (key, value) in changes {
            do {
                _ = try PropertyList.Key(key.string, limit: Limits.domain.keyLength)
                try value?.validate(.domain)
            } catch {
                throw UbiquitousStoreError(refusing: error)
            }
        }
        // The service says which keys roam.
        if box.process.mayRoam(box.own) { box.becomeReady() }
        if try box.process.writeRoaming(box.own, changes, isWhole: isWhole, done: done) { postDidChange() }
    }

    func refuse(_ names: [String], _ error: any Error) {
        logDefaults("\(names.map { "\"\($0)\"" }.joined(separator: ", ")) was not set: \(error)")
        let changes = names.map { name in
            let value = box.value(name)
            return SearchList.Change(key: Text(name), old: value, new: value)
        }
        box.tell(DefaultsChange(reason: DefaultsChange.refused, changes: changes, error: error))
    }

    // MARK: Suites

    /// Searches a further domain, after the object's own and suites that were added before; nothing is written to it.
    open func addSuite(named suiteName: String) {
        guard DomainName.problem(suiteName) == nil, Text(suiteName) != box.own, suiteName != Self.globalDomain else {
            return
        }
        let suites = box.list.withLock { $0.suites }
        if !suites.contains(Text(suiteName)) { box.process.search(suites + [Text(suiteName)], box) }
    }

    /// Searches a domain no more.
    open func removeSuite(named suiteName: String) {
        let suites = box.list.withLock { $0.suites }
        box.process.search(suites.filter { $0 != Text(suiteName) }, box)
    }

    // MARK: Volatile domains

    /// The names of the volatile domains: the arguments, what was registered, and the object's own.
    open var volatileDomainNames: [String] {
        [Self.argumentDomain, Self.registrationDomain] + volatile.withLock { $0.keys.sorted() }
    }

    /// What a volatile domain has; empty if there is none of that name.
    open func volatileDomain(forName domainName: String) -> [String: Any] {
        if let layer = Self.volatileLayer(domainName) { return box.process.volatile(layer).objects }
        return volatile.withLock { $0[domainName] ?? [:] }.objects
    }

    /// Gives a volatile domain these values and no others. Only the arguments' and the registered ones are searched.
    open func setVolatileDomain(_ domain: [String: Any], forName domainName: String) {
        let values = checked(domain)
        if let layer = Self.volatileLayer(domainName) {
            if box.process.setVolatile(layer, values) { postDidChange() }
        } else {
            volatile.withLock { $0[domainName] = values }
            postDidChange()
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

    /// What a domain has for every host; `nil` if that is nothing.
    open func persistentDomain(forName domainName: String) -> [String: Any]? {
        guard let domain = persistent(domainName) else { return nil }
        box.process.awaitDomains([domain])
        let values = box.process.contents(of: .domain(domain))
        return values.isEmpty ? nil : values.objects
    }

    /// Gives a domain these values and no others, all or nothing.
    open func setPersistentDomain(_ domain: [String: Any], forName domainName: String) {
        guard let name = persistent(domainName) else { return }
        box.process.awaitDomains([name])
        if box.process.replace(.domain(name), by: checked(domain)) { postDidChange() }
    }

    /// Empties a domain.
    open func removePersistentDomain(forName domainName: String) { setPersistentDomain([:], forName: domainName) }

    /// The names of the person's domains that have values, sorted. Without the service: of those that this process knows.
    open func persistentDomainNames() -> [Any] { box.process.domainNames() as [Any] }

    private func persistent(_ name: String) -> Text? {
        if Self.volatileLayer(name) != nil || DomainName.problem(name) != nil {
            logDefaults("\"\(name)\" names no domain that is stored; nothing was done.")
            return nil
        }
        return Text(name)
    }

    /// Property lists by key; what is none, or has a key that is too long, is left out and told.
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
                refuse([name], error)
            }
        }
        return values
    }

    // MARK: Managed keys

    /// Whether an administrator decides about a key, by a value or a lock.
    open func objectIsForced(forKey key: String) -> Bool { box.read { $0.isForced(Text(key)) } }

    /// The same of a key of one domain, which the object need not search.
    open func objectIsForced(forKey key: String, inDomain domain: String) -> Bool {
        guard DomainName.problem(domain) == nil else { return false }
        box.process.awaitDomains([Text(domain)])
        let managed = box.process.managed(Text(domain))
        return managed.forced[Text(key)] != nil || managed.locked.contains(Text(key))
    }

    // MARK: Deprecated

    /// Waits until everything that was set is on the disk, a second at most. There is no need to call it.
    ///
    /// - Returns: false if something is neither in the service nor in a file for it.
    @discardableResult
    open func synchronize() -> Bool { Settlement(process: box.process).synchronize(box.own) }

    /// Does nothing.
    open class func resetStandardUserDefaults() {}

    // MARK: Names

    /// The domain of arguments.
    public class var argumentDomain: String { "NSArgumentDomain" }
    /// The domain that every program searches.
    public class var globalDomain: String { "NSGlobalDomain" }
    /// The domain of registered values.
    public class var registrationDomain: String { "NSRegistrationDomain" }
}

extension UserDefaults {
    /// Posted when this process changes a setting, on the thread that changes it. The object is the one that was used.
    public class var didChangeNotification: NSNotification.Name {
        NSNotification.Name("NSUserDefaultsDidChangeNotification")
    }
    /// Posted when a write was refused because a domain would get too large, and taken back.
    public class var sizeLimitExceededNotification: NSNotification.Name {
        NSNotification.Name("com.apple.CFPreferences.byteCountLimitReached")
    }
    /// Posted once in a process, when a key that roams is set and nobody has signed in: it stays on this device.
    public class var noCloudAccountNotification: NSNotification.Name {
        NSNotification.Name("NSUbiquitousUserDefaultsNoCloudAccountNotification")
    }
    /// Posted when the person has signed in, out, or to another account, if keys of the app's domain roam.
    public class var didChangeCloudAccountsNotification: NSNotification.Name {
        NSNotification.Name("NSUbiquitousUserDefaultsDidChangeAccountsNotification")
    }
    /// Posted when the account's values have arrived for the first time, if keys of the app's domain roam.
    public class var completedInitialCloudSyncNotification: NSNotification.Name {
        NSNotification.Name("NSUbiquitousUserDefaultsCompletedInitialSyncNotification")
    }
}
