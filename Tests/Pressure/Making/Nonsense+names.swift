// SPDX-License-Identifier: Apache-2.0

internal import SeededRandom
internal import StoreBus

extension Nonsense {
    /// The stores that manifests declare.
    static let declared = (0..<4).map { "org.example.App\($0)" }

    mutating func path(fitting interface: String) -> String {
        switch interface {
        case BusNames.managerInterface: BusNames.managerPath
        case BusNames.accountInterface: "\(BusNames.usersPath)/\(user())"
        case BusNames.storeInterface: store()
        default: any([BusNames.managerPath, "\(BusNames.usersPath)/\(user())", store()])
        }
    }

    private mutating func store() -> String {
        "\(BusNames.usersPath)/\(user())/org_2eexample_2eApp\(oneIn(20) ? 4 : number(4))"
    }

    private mutating func user() -> String {
        oneIn(6) ? any(["u65534", "u1", "u0", "u2", "u4294967295", "u4294967296", "u", "x"]) : "self"
    }

    mutating func anyPath() -> String {
        switch number(5) {
        case 0: "/"
        case 1: BusNames.usersPath
        case 2: store() + any(["/x", "_", "_2", "_zz", "/a/b/c"])
        case 3: "/" + (0...number(30)).map { _ in anyName() }.joined(separator: "/")
        default: "\(BusNames.usersPath)/\(user())/" + String(repeating: "a", count: 1 + number(3000))
        }
    }

    /// A word that may be part of any name.
    mutating func anyName() -> String {
        any(["a", "Get", "_", "GetValue_", "getValue", "x9", String(repeating: "n", count: 1 + number(60))])
    }

    /// A string for any purpose: a key, an identifier, an interface, an address, a side or a name.
    mutating func string() -> String {
        switch number(20) {
        case 0...9: any(fitting)
        case 10:
            any(Self.declared + ["org.example.App9", "org.example.Registered1", "", ".", "..", "../../etc/passwd"])
        case 11: any(Member.all).interface
        case 12: any(Member.all).name
        case 14: any(Self.addresses)
        case 15: any(["local", "remote", "if-generation", "user", "password", "create", "keep-values", "ca-pem"])
        case 16:
            any([
                "e\u{301}", "\u{e9}", "\u{1f469}\u{200d}\u{1f680}", "\u{feff}", "\u{202e}x", "\u{10ffff}", "\n", "%s%n",
            ])
        case 17: String(repeating: any(["k", "\u{e9}", "\u{1f600}"]), count: any([127, 128, 129, 64, 65]))
        case 18: oneIn(100) ? String(repeating: "large ", count: number(400_000)) : "State"
        case 19: any(Self.properties)
        default: String(String.UnicodeScalarView((0..<number(12)).map { _ in scalar() }))
        }
    }

    static let properties = ["Generation", "Limits", "Version", "Backend", "State", "KeyCount", "Features"]

    /// No host names, because a lookup could take any time.
    private static let addresses = [
        "folder:///", "folder:///etc", "folder://host/x", "folder:", "webdav://127.0.0.1:1/a", "webdavs://[::1]:1/",
        "webdav://user:password@127.0.0.1:1/", "etcd://127.0.0.1:1/p", "nothing://x", "://",
        "webdav://127.0.0.1:99999/",
        "webdav://127.0.0.1:1/%00", "folder:///proc/self/root", "webdavs://", "folder:////..",
    ]

    private mutating func scalar() -> Unicode.Scalar {
        Unicode.Scalar(UInt32(1 + number(0x10ffff))) ?? "x"
    }
}
