// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Glibc
internal import Synchronization

/// A real WebDAV server on loopback, with its own directory and port. Its process is killed on release.
public final class WebDAVServer: Sendable {
    /// The servers for which there are configurations.
    public enum Kind: String, CaseIterable, Sendable {
        case apache, nginx, lighttpd, rclone, wsgidav
        /// nginx without dav-ext: no PROPFIND, but pages that list a folder.
        case nginxIndex
        /// nginx with neither, so that nothing can be listed.
        case nginxBare
        /// sabre/dav, on which Nextcloud's WebDAV is built, under Nextcloud's paths.
        case sabre

        /// The program that runs it; `nil` if that or a module is not installed.
        public var program: String? {
            let candidates: [String] =
                switch self {
                case .apache: ["/usr/sbin/apache2"]
                case .nginx, .nginxIndex, .nginxBare: ["/usr/sbin/nginx"]
                case .lighttpd: ["/usr/sbin/lighttpd"]
                case .rclone: ["/usr/bin/rclone"]
                case .wsgidav: [Cache.path + "/wsgidav/bin/wsgidav", "/usr/bin/wsgidav"]
                case .sabre: ["/usr/bin/php"]
                }
            let modules: [String] =
                switch self {
                case .nginx: ["/usr/lib/nginx/modules/ngx_http_dav_ext_module.so"]
                case .lighttpd: ["/usr/lib/lighttpd/mod_webdav.so"]
                case .sabre: ["/usr/share/php/Sabre/autoload.php"]
                default: []
                }
            guard modules.allSatisfy({ Glibc.access($0, F_OK) == 0 }) else { return nil }
            return candidates.first { Glibc.access($0, X_OK) == 0 }
        }

        /// The installed servers.
        public static var installed: [Kind] { allCases.filter { $0.program != nil } }
        /// The servers that are not installed.
        public static var missing: [Kind] { allCases.filter { $0.program == nil } }
    }

    /// How the server authenticates users.
    public enum Access: Sendable { case open, basic, digest }

    /// The user, where the server authenticates users.
    public static let user = "ada"
    /// The user's password.
    public static let password = "s3cret-0f-the-tests"

    /// The kind of server.
    public let kind: Kind
    /// The port on which it listens.
    public let port: UInt16
    /// The server's directory. It serves `www/dav` in it.
    public let directory: String
    /// The certificate of its authority in PEM; `nil` without TLS.
    public let authority: [UInt8]?
    private let access: Access
    private let process = Mutex<pid_t>(0)

    /// Makes the directories and starts the server.
    public init(_ kind: Kind, access: Access = .open, isSecure: Bool = false) throws {
        self.kind = kind
        self.access = access
        port = try Socket.freePort()
        directory =
            FileManager.default.temporaryDirectory.path + "/ubiquitous-store-\(kind)-\(UUID().uuidString.prefix(8))"
        try FileManager.default.createDirectory(atPath: directory + "/www/dav", withIntermediateDirectories: true)
        try FileManager.default.createDirectory(atPath: directory + "/run", withIntermediateDirectories: true)
        authority = isSecure ? try Certificates.make(in: directory) : nil
        try writeFiles()
        try start()
    }

    deinit {
        stop()
        try? FileManager.default.removeItem(atPath: directory)
    }

    /// The beginning of an account's URL.
    public var url: String { "webdav\(authority == nil ? "" : "s")://127.0.0.1:\(port)\(path)" }

    private var path: String { kind == .sabre ? "/remote.php/dav/files/\(Self.user)" : "/dav" }

    /// The directory of the served files.
    public var root: String { directory + "/www/dav" }

    /// Makes a folder among the served files, with the owner that the server would give it.
    public func makeFolder(_ name: String) throws {
        try FileManager.default.createDirectory(atPath: root + "/" + name, withIntermediateDirectories: true)
        if servesAsNobody { chown(root + "/" + name, Self.nobody, Self.nobody) }
    }

    /// Makes a directory that has the authority under the name by which OpenSSL finds it.
    public func makeAuthorities() throws -> String {
        let place = directory + "/authorities"
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
        try FileManager.default.copyItem(atPath: directory + "/ca.pem", toPath: place + "/ca.pem")
        _ = try Certificates.run(["openssl", "rehash", place])
        return place
    }

    /// Restores the served files from a copy.
    public func restore(from copy: String) throws {
        try FileManager.default.removeItem(atPath: root)
        _ = try Certificates.run(["cp", "-a", copy, root])
    }

    /// Restarts an apache or nginx with a certificate of another authority. It closes its connections, as when a
    /// service manager restarts it.
    public func changeCertificate() throws {
        stop(by: kind == .apache ? SIGWINCH : SIGQUIT)
        for name in ["cert.pem", "key.pem"] { try FileManager.default.removeItem(atPath: "\(directory)/\(name)") }
        _ = try Certificates.make(in: directory)
        try start()
    }

    /// Restarts the server with another password.
    public func change(password: String) throws {
        stop()
        try writeUsers(password)
        try start()
    }

    // MARK: Starting and ending

    /// Starts the server, and waits until it takes connections.
    public func start() throws {
        guard let program = kind.program else { throw ServerMissing(kind: kind) }
        let pid = try ServerProcess.spawn([program] + arguments, log: directory + "/run/output")
        process.withLock { $0 = pid }
        for _ in 0..<6000 {
            if (try? Socket.connected(to: port)) != nil { return }
            usleep(10_000)
        }
        let log = (try? String(contentsOfFile: directory + "/run/output", encoding: .utf8)) ?? ""
        throw ServerMissing(kind: kind, log: log)
    }

    /// Kills the server, and everything that it has started.
    public func stop() { stop(by: SIGKILL) }

    private func stop(by signal: Int32) {
        process.withLock { pid in
            if pid > 0 { ServerProcess.end(pid, signal) }
            pid = 0
        }
    }

    // MARK: Configurations

    private var arguments: [String] {
        let conf = directory + "/run/conf"
        switch kind {
        case .apache: return ["-f", conf, "-D", "FOREGROUND"]
        case .nginx, .nginxIndex, .nginxBare: return ["-c", conf]
        case .lighttpd: return ["-D", "-f", conf]
        case .rclone:
            let own = ["serve", "webdav", directory + "/www", "--addr", "127.0.0.1:\(port)", "--config", "/dev/null"]
            let credentials = access == .open ? [] : ["--user", Self.user, "--pass", Self.password]
            let tls = authority == nil ? [] : ["--cert", directory + "/cert.pem", "--key", directory + "/key.pem"]
            return own + credentials + tls
        case .wsgidav: return ["--no-config", "--config", conf + ".yaml"].suffix(2) + ["--server", "cheroot"]
        case .sabre: return ["-S", "127.0.0.1:\(port)", conf + ".php"]
        }
    }

    private func writeFiles() throws {
        let conf = directory + "/run/conf"
        switch kind {
        case .apache: try write(apache, conf)
        case .nginx, .nginxIndex, .nginxBare: try write(nginx, conf)
        case .lighttpd: try write(lighttpd, conf)
        case .rclone: break
        case .wsgidav: try write(wsgidav, conf + ".yaml")
        case .sabre: try write(sabre, conf + ".php")
        }
        try writeUsers()
        chmod(directory, 0o755)
        guard servesAsNobody else { return }
        for path in ["", "/www", "/www/dav", "/run"] { chown(directory + path, Self.nobody, Self.nobody) }
    }

    /// Whether the server changes to another user than root.
    private var servesAsNobody: Bool { geteuid() == 0 && ![.rclone, .wsgidav, .sabre].contains(kind) }

    private static let nobody: UInt32 = 65534

    private func write(_ text: String, _ path: String) throws {
        try text.write(toFile: path, atomically: false, encoding: .utf8)
    }

    /// Writes the files of users, whose formats are older than this program by decades.
    private func writeUsers(_ password: String = WebDAVServer.password) throws {
        let user = Self.user
        try write("\(user):{PLAIN}\(password)\n", directory + "/users")
        try write("\(user):\(password)\n", directory + "/users.plain")
        let hash = try Certificates.run(["openssl", "passwd", "-apr1", password])
        try write("\(user):\(hash)\n", directory + "/users.basic")
        let digest = try Certificates.run(["openssl", "dgst", "-md5", "-r"], input: "\(user):dav:\(password)").prefix(
            32)
        try write("\(user):dav:\(digest)\n", directory + "/users.digest")
    }

    private var apache: String {
        let auth =
            switch access {
            case .open: "Require all granted"
            case .basic:
                "AuthType Basic\n AuthName dav\n AuthUserFile \(directory)/users.basic\n Require valid-user"
            case .digest:
                "AuthType Digest\n AuthName dav\n AuthUserFile \(directory)/users.digest\n Require valid-user"
            }
        let modules =
            [
                "mpm_event", "authz_core", "authn_core", "authn_file", "authz_user", "auth_basic", "auth_digest",
                "setenvif",
                "dir", "mime", "dav", "dav_fs",
            ] + (authority == nil ? [] : ["ssl"])
        let tls =
            authority == nil
            ? "" : "SSLEngine on\nSSLCertificateFile \(directory)/cert.pem\nSSLCertificateKeyFile \(directory)/key.pem"
        return """
            ServerRoot /usr/lib/apache2
            Listen 127.0.0.1:\(port)
            ServerName localhost
            PidFile \(directory)/run/pid
            ErrorLog \(directory)/run/error.log
            DefaultRuntimeDir \(directory)/run
            \(modules.map { "LoadModule \($0)_module modules/mod_\($0).so" }.joined(separator: "\n"))
            TypesConfig /etc/mime.types
            User nobody
            Group nogroup
            \(tls)
            DocumentRoot \(directory)/www
            DavLockDB \(directory)/run/davlock
            <Directory \(directory)/www>
             Require all granted
             AllowOverride None
            </Directory>
            <Directory \(directory)/www/dav>
             Dav On
             DirectorySlash Off
             DirectoryIndex disabled
             \(auth)
            </Directory>

            """
    }

    private var nginx: String {
        let isWhole = kind == .nginx
        let load = isWhole ? "load_module /usr/lib/nginx/modules/ngx_http_dav_ext_module.so;" : ""
        let listing = isWhole ? "dav_ext_methods PROPFIND OPTIONS;" : kind == .nginxIndex ? "autoindex on;" : ""
        let auth = access == .open ? "" : "auth_basic dav; auth_basic_user_file \(directory)/users.basic;"
        let tls =
            authority == nil ? "" : "ssl_certificate \(directory)/cert.pem; ssl_certificate_key \(directory)/key.pem;"
        return """
            \(load)
            daemon off; user nobody nogroup; worker_processes 1; pid \(directory)/run/pid; error_log \(directory)/run/error.log;
            events { worker_connections 256; }
            http { access_log off;
             client_body_temp_path \(directory)/run/body; proxy_temp_path \(directory)/run/proxy;
             fastcgi_temp_path \(directory)/run/f; uwsgi_temp_path \(directory)/run/u; scgi_temp_path \(directory)/run/s;
             server { listen 127.0.0.1:\(port)\(authority == nil ? "" : " ssl"); \(tls) root \(directory)/www; \(auth)
              location /dav/ { client_max_body_size 8m; dav_methods PUT DELETE MKCOL; \(listing) dav_access user:rw; } } }

            """
    }

    private var lighttpd: String {
        let backend = """
            server.modules += ("mod_auth", "mod_authn_file")
            auth.backend = "plain"
            auth.backend.plain.userfile = "\(directory)/users.plain"
            auth.require = ("" => ("method" => "\(access == .digest ? "digest" : "basic")", "realm" => "dav", "require" => "valid-user"))
            """
        let user = geteuid() == 0 ? "server.username = \"nobody\"\nserver.groupname = \"nogroup\"" : ""
        return """
            server.modules = ("mod_webdav")
            server.bind = "127.0.0.1"
            server.port = \(port)
            \(user)
            server.document-root = "\(directory)/www"
            server.pid-file = "\(directory)/run/pid"
            server.errorlog = "\(directory)/run/error.log"
            server.upload-dirs = ("\(directory)/run")
            webdav.activate = "enable"
            mimetype.assign = ("" => "application/octet-stream")
            \(access == .open ? "" : backend)

            """
    }

    private var wsgidav: String {
        let users = access == .open ? "\"*\": true" : "\"*\": {\"\(Self.user)\": {\"password\": \"\(Self.password)\"}}"
        let tls =
            authority == nil
            ? "" : "ssl_certificate: \(directory)/cert.pem\nssl_private_key: \(directory)/key.pem\nssl_adapter: builtin"
        return """
            host: 127.0.0.1
            port: \(port)
            provider_mapping:
              "/": "\(directory)/www"
            simple_dc:
              user_mapping: {\(users)}
            http_authenticator:
              accept_basic: true
              accept_digest: \(access == .digest)
              default_to_digest: \(access == .digest)
            logging:
              enable: false
            \(tls)

            """
    }

    /// sabre/dav is older than the PHP that runs it, which warns of that at length.
    private var sabre: String {
        let asking = """
            class Users extends Sabre\\DAV\\Auth\\Backend\\AbstractBasic {
                protected function validateUserPass($user, $password) {
                    return "$user:$password" === trim(file_get_contents('\(directory)/users.plain'));
                }
            }
            $server->addPlugin(new Sabre\\DAV\\Auth\\Plugin(new Users(), 'dav'));
            """
        return """
            <?php
            error_reporting(0);
            date_default_timezone_set('UTC');
            require_once 'Sabre/autoload.php';
            $server = new Sabre\\DAV\\Server(new Sabre\\DAV\\FS\\Directory('\(root)'));
            $server->setBaseUri('\(path)/');
            \(access == .open ? "" : asking)
            $server->exec();

            """
    }
}

/// A server that is not installed, or does not start.
public struct ServerMissing: Error, CustomStringConvertible {
    let kind: WebDAVServer.Kind
    var log = ""

    /// What to do about it.
    public var description: String {
        log.isEmpty
            ? "\(kind) is not installed: script/bootstrap --all installs it" : "\(kind) does not start: \(log)"
    }
}
