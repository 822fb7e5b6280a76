// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import PanelModel
@testable import UbiquitousStore

struct SignInFormTests {
    private func form(_ kind: RemoteKind, _ values: [SignInField: String]) -> SignInForm {
        var form = SignInForm(kind)
        form.values = values
        return form
    }

    private func nextcloud(_ server: String, user: String = "ada", folder: String? = nil) -> SignInForm {
        var values: [SignInField: String] = [.server: server, .user: user]
        values[.folder] = folder
        return form(.nextcloud, values)
    }

    @Test func `a kind asks for everything that its servers take`() {
        #expect(RemoteKind.webDAV.fields == [.address, .user, .password, .token, .certificate])
        #expect(RemoteKind.etcd.fields == [.members, .prefix, .user, .password, .token, .certificate])
        #expect(RemoteKind.folder.fields == [.path])
    }

    @Test(arguments: [
        "cloud.example.org", " https://cloud.example.org ", "https://Cloud.example.org/", "webdavs://cloud.example.org",
        "https://cloud.example.org/index.php/apps/files/", "https://cloud.example.org/apps/files",
        "https://cloud.example.org/remote.php/dav/files/ada/", "https://cloud.example.org/login",
    ])
    func `whatever of Nextcloud's addresses is entered, the account's is made of it`(server: String) throws {
        #expect(
            try nextcloud(server).address() == "webdavs://cloud.example.org/remote.php/dav/files/ada/Settings")
    }

    @Test func `a Nextcloud below a path, on a port, with odd names, is found there`() throws {
        let address = try nextcloud("http://127.0.0.1:8080/nc/", user: "Ada L@x", folder: "/My Settings/ä").address()
        #expect(
            address == "webdav://127.0.0.1:8080/nc/remote.php/dav/files/Ada%20L%40x/My%20Settings/%C3%A4")
    }

    @Test(arguments: [
        ("", SignInField.server), ("https://ada:secret@cloud.example.org", .server), ("cloud example.org", .server),
        ("https://", .server), ("ftp://cloud.example.org", .server), ("cloud.example.org:99999", .server),
        ("cloud.example.org/?x=1", .server), ("cloud\u{07}.example.org", .server),
    ])
    func `an address that can't be right is said at its field`(server: String, field: SignInField) {
        let error = #expect(throws: FieldError.self) { try nextcloud(server).address() }
        #expect(error?.field == field)
        #expect(error?.sentence.hasSuffix(".") == true)
        #expect(error?.sentence.contains("secret") == false)
    }

    @Test(arguments: ["..", "a/../b", "/", "  "])
    func `a folder that leads elsewhere is refused`(folder: String) {
        let error = #expect(throws: FieldError.self) { try nextcloud("cloud.example.org", folder: folder).address() }
        #expect(error?.field == .folder)
    }

    @Test func `names of 255 characters and right-to-left ones become addresses`() throws {
        let long = String(repeating: "x", count: 255)
        #expect(try nextcloud("cloud.example.org", user: long).address().contains(long))
        #expect(
            try nextcloud("cloud.example.org", folder: "הגדרות").address().hasSuffix(
                "/%D7%94%D7%92%D7%93%D7%A8%D7%95%D7%AA"))
    }

    @Test func `addresses of the other kinds are made of what is entered`() throws {
        #expect(
            try form(.webDAV, [.address: "https://dav.example.org/my files"]).address()
                == "webdavs://dav.example.org/my%20files")
        #expect(
            try form(.webDAV, [.address: "https://dav.example.org/a%20b"]).address()
                == "webdavs://dav.example.org/a%20b")
        #expect(try form(.folder, [.path: "/home/ada/100% #1"]).address() == "folder:///home/ada/100%25%20%231")
        #expect(try form(.folder, [.path: "folder:///home/a%20b"]).address() == "folder:///home/a%20b")
        #expect(
            try form(.etcd, [.members: "https://a.example.org:2379/, b.example.org", .prefix: "/settings/ada/"])
                .address()
                == "etcds://a.example.org:2379,b.example.org/settings/ada")
    }

    @Test(arguments: [
        (RemoteKind.folder, [SignInField.path: "Documents"], SignInField.path),
        (.webDAV, [.address: "dav.example.org"], .address), (.etcd, [.members: "a.example.org"], .prefix),
        (.etcd, [.members: "a b", .prefix: "x"], .members), (.etcd, [.members: "u:p@a", .prefix: "x"], .members),
    ])
    func `what is missing is asked for at its field`(
        kind: RemoteKind, values: [SignInField: String], field: SignInField
    ) {
        let error = #expect(throws: FieldError.self) { try form(kind, values).address() }
        #expect(error?.field == field)
    }

    @Test func `what was typed for one kind does not go to another`() throws {
        var form = form(.webDAV, [.address: "https://dav.example.org/x", .user: "ada", .password: "p", .path: "/x"])
        form.kind = .folder
        let options = try form.options()
        #expect(options.user == nil)
        #expect(options.password == nil)
    }

    @Test(arguments: [
        ([SignInField.user: "ada"], SignInField.password), ([.password: "p"], .user),
        ([.token: "t", .user: "ada"], .token),
    ])
    func `credentials that are half or contradict are refused`(
        values: [SignInField: String], field: SignInField
    ) {
        let error = #expect(throws: FieldError.self) { try form(.webDAV, values).options() }
        #expect(error?.field == field)
    }

    @Test func `a new account is encrypted, unless that is switched off`() throws {
        var folder = form(.folder, [.path: "/home/ada/x"])
        #expect(try folder.options().encrypts == true)
        #expect(try form(.etcd, [.members: "a", .prefix: "x"]).options().encrypts == true)
        folder.recoveryWords = "abandon"
        #expect(try folder.options().encrypts == nil)
        #expect(try folder.options().recoveryPhrase == "abandon")
        (folder.recoveryWords, folder.encrypts) = (nil, false)
        #expect(try folder.options().encrypts == nil)
    }

    @Test func `spaces around a password are part of it`() throws {
        #expect(try form(.webDAV, [.user: " ada ", .password: " p "]).options().password == " p ")
        #expect(try form(.webDAV, [.user: " ada ", .password: " p "]).options().user == "ada")
    }

    @Test func `an address without TLS is warned of, except on this machine`() {
        #expect(form(.webDAV, [.address: "http://dav.example.org/x"]).warning != nil)
        #expect(form(.webDAV, [.address: "https://dav.example.org/x"]).warning == nil)
        #expect(form(.webDAV, [.address: "http://127.0.0.1:1/x"]).warning == nil)
        #expect(form(.webDAV, [.address: ""]).warning == nil)
    }

    @Test(arguments: [
        (
            UbiquitousStoreError.Code.backendAuthenticationFailed, RemoteKind.nextcloud,
            SignInField.appPassword as SignInField?
        ),
        (.backendAuthenticationFailed, .etcd, .password), (.backendUnavailable, .nextcloud, .server),
        (.accessDenied, .folder, .path), (.backendFull, .webDAV, .address), (.invalidArguments, .etcd, .members),
        (.busy, .folder, nil),
    ])
    func `an error of the service belongs to a field`(
        code: UbiquitousStoreError.Code, kind: RemoteKind, field: SignInField?
    ) {
        let error = FieldError(UbiquitousStoreError(code, "As the service says."), in: SignInForm(kind))
        #expect(error.field == field)
        #expect(error.details == "As the service says.")
    }

    @Test func `only the kinds that the service has are offered`() {
        #expect(RemoteKind.offered(by: ["folder"]) == [.folder])
        #expect(RemoteKind.offered(by: ["etcd", "folder", "webdavs"]) == [.nextcloud, .webDAV, .folder, .etcd])
    }

    @Test func `certificates are read from a small regular file, and from nothing else`() {
        for path in ["/dev/zero", "/nonexistent", "/tmp"] {
            var form = form(.webDAV, [.certificate: path])
            #expect(throws: FieldError.self) { try form.readCertificate() }
        }
    }

    @Test(arguments: [
        (
            "webdavs://cloud.example.org/nc/remote.php/dav/files/Ada%20L/My%20Settings", RemoteKind.nextcloud,
            [SignInField.server: "https://cloud.example.org/nc", .user: "Ada L", .folder: "My Settings"]
        ),
        ("webdav://127.0.0.1:8080/a%20b", .webDAV, [.address: "http://127.0.0.1:8080/a b"]),
        ("etcds://a:1,b:2/settings/ada", .etcd, [.members: "a:1,b:2", .prefix: "settings/ada"]),
        ("etcd://a/s", .etcd, [.members: "http://a", .prefix: "s"]), ("folder:///a%20b", .folder, [.path: "/a b"]),
    ])
    func `for a new password the account's location is in the fields, and stays what it is`(
        address: String, kind: RemoteKind, values: [SignInField: String]
    ) throws {
        let form = SignInForm(renewing: address)
        #expect(form.kind == kind && form.values == values)
        #expect(try form.address() == address)
        #expect(values.keys.filter { !form.isFixed($0) } == (kind == .nextcloud ? [.user] : []))
        // What is shown is what would be typed.
        var typed = SignInForm(kind)
        typed.values = values
        #expect(try typed.address() == address)
    }

    @Test func `for a new password a password is enough, or a token, but not nothing`() throws {
        var form = SignInForm(renewing: "webdavs://dav.example.org/settings")
        #expect(throws: FieldError.self) { try form.options() }
        form.values[.token] = "t"
        #expect(try form.options().token == "t")
        form.values[.password] = "p"
        #expect(throws: FieldError.self) { try form.options() }
        form.values[.token] = ""
        let options = try form.options()
        #expect(options.password == "p" && options.renews == true && options.user == nil && options.encrypts == nil)
        form.values[.password] = ""
        form.values[.user] = "ada"
        #expect(throws: FieldError.self) { try form.options() }
    }

    @Test func `a password for an account that had a token wants a user name`() {
        var form = SignInForm(renewing: "webdavs://dav.example.org/settings")
        form.values[.password] = "p"
        let error = FieldError(UbiquitousStoreError(.backendUnsupported, "A server wants a user."), in: form)
        #expect(error.field == .user && error.sentence == "Enter the user name.")
    }

    @Test func `where folders may be is said as the administrator has set it`() {
        #expect(FolderRoots(nil).explanation == nil && FolderRoots(["/"]).explanation == nil)
        #expect(FolderRoots(["/"]).preset.isEmpty && !FolderRoots(["/"]).areNone)
        #expect(FolderRoots([]).areNone && FolderRoots([]).explanation != nil)
        #expect(FolderRoots(["/srv/a", "/srv/b"]).preset == "/srv/a")
        #expect(FolderRoots(["/srv/a", "/srv/b"]).explanation?.contains("/srv/b") == true)
    }

    @Test(arguments: [("sign in", true, "User and Password: OK"), ("a new step", false, "a new step: failed")])
    func `a step of a check is named with its outcome`(step: String, isPassed: Bool, title: String) {
        #expect(CheckStep(BackendStep(step: step, isPassed: isPassed, detail: "")).title == title)
    }
}
