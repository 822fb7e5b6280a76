// SPDX-License-Identifier: Apache-2.0

public import Foundation

extension UserDefaults {
    /// The same settings as an object of Foundation's class, to pass to packages that take one.
    ///
    /// Packages that use `Foundation.UserDefaults.standard` by themselves still get Foundation's settings.
    public var foundation: Foundation.UserDefaults { FoundationDefaults(self) ?? Foundation.UserDefaults() }
}

/// Foundation's class with this library's settings. It overrides every member that can be overridden.
final class FoundationDefaults: Foundation.UserDefaults {
    private let defaults: UserDefaults

    init?(_ defaults: UserDefaults) {
        self.defaults = defaults
        // Foundation reads the file of this domain, so no program may have this name.
        super.init(suiteName: "org.example.UbiquitousStore.foundation")
    }

    override class var standard: Foundation.UserDefaults { UserDefaults.standard.foundation }
    override class func resetStandardUserDefaults() {}

    override func object(forKey defaultName: String) -> Any? { defaults.object(forKey: defaultName) }
    override func string(forKey defaultName: String) -> String? { defaults.string(forKey: defaultName) }
    override func array(forKey defaultName: String) -> [Any]? { defaults.array(forKey: defaultName) }
    override func dictionary(forKey defaultName: String) -> [String: Any]? { defaults.dictionary(forKey: defaultName) }
    override func data(forKey defaultName: String) -> Data? { defaults.data(forKey: defaultName) }
    override func stringArray(forKey defaultName: String) -> [String]? { defaults.stringArray(forKey: defaultName) }
    override func integer(forKey defaultName: String) -> Int { defaults.integer(forKey: defaultName) }
    override func float(forKey defaultName: String) -> Float { defaults.float(forKey: defaultName) }
    override func double(forKey defaultName: String) -> Double { defaults.double(forKey: defaultName) }
    override func bool(forKey defaultName: String) -> Bool { defaults.bool(forKey: defaultName) }
    override func url(forKey defaultName: String) -> URL? { defaults.url(forKey: defaultName) }
    override func dictionaryRepresentation() -> [String: Any] { defaults.dictionaryRepresentation() }

    override func set(_ value: Any?, forKey defaultName: String) { defaults.set(value, forKey: defaultName) }
    override func set(_ value: Int, forKey defaultName: String) { defaults.set(value, forKey: defaultName) }
    override func set(_ value: Float, forKey defaultName: String) { defaults.set(value, forKey: defaultName) }
    override func set(_ value: Double, forKey defaultName: String) { defaults.set(value, forKey: defaultName) }
    override func set(_ value: Bool, forKey defaultName: String) { defaults.set(value, forKey: defaultName) }
    override func set(_ url: URL?, forKey defaultName: String) { defaults.set(url, forKey: defaultName) }
    override func removeObject(forKey defaultName: String) { defaults.removeObject(forKey: defaultName) }
    override func register(defaults registrationDictionary: [String: Any]) {
        defaults.register(defaults: registrationDictionary)
    }

    override func addSuite(named suiteName: String) { defaults.addSuite(named: suiteName) }
    override func removeSuite(named suiteName: String) { defaults.removeSuite(named: suiteName) }

    override var volatileDomainNames: [String] { defaults.volatileDomainNames }
    override func volatileDomain(forName domainName: String) -> [String: Any] {
        defaults.volatileDomain(forName: domainName)
    }
    override func setVolatileDomain(_ domain: [String: Any], forName domainName: String) {
        defaults.setVolatileDomain(domain, forName: domainName)
    }
    override func removeVolatileDomain(forName domainName: String) {
        defaults.removeVolatileDomain(forName: domainName)
    }

    override func persistentDomain(forName domainName: String) -> [String: Any]? {
        defaults.persistentDomain(forName: domainName)
    }
    override func setPersistentDomain(_ domain: [String: Any], forName domainName: String) {
        defaults.setPersistentDomain(domain, forName: domainName)
    }
    override func removePersistentDomain(forName domainName: String) {
        defaults.removePersistentDomain(forName: domainName)
    }

    override func synchronize() -> Bool { defaults.synchronize() }
    override func objectIsForced(forKey key: String) -> Bool { defaults.objectIsForced(forKey: key) }
    override func objectIsForced(forKey key: String, inDomain domain: String) -> Bool {
        defaults.objectIsForced(forKey: key, inDomain: domain)
    }
}
