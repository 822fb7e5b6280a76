// SPDX-License-Identifier: Apache-2.0

// libcurl is loaded with the first request, not linked: it brings 30 libraries and 1.2 MB of private memory, which
// users with an account in a folder, or without one, don't need (decision 13).

internal import CCurl
internal import EventLoop
internal import Glibc

/// The functions of libcurl, which is loaded when first needed and then stays loaded.
@BusActor
final class Curl {
    typealias Easy = UnsafeMutableRawPointer
    typealias Multi = UnsafeMutableRawPointer
    typealias List = UnsafeMutablePointer<curl_slist>

    private static var loaded: Curl?

    /// Returns the library, and loads it if necessary.
    /// - Throws: ``HTTPFailure/libraryMissing(_:)``.
    static func load() throws(HTTPFailure) -> Curl {
        if let loaded { return loaded }
        let library = try Curl()
        loaded = library
        return library
    }

    let easyMake: @convention(c) () -> Easy?
    let easyEnd: @convention(c) (Easy?) -> Void
    let easyPause: @convention(c) (Easy?, Int32) -> CURLcode
    let multiMake: @convention(c) () -> Multi?
    let multiAdd: @convention(c) (Multi?, Easy?) -> CURLMcode
    let multiRemove: @convention(c) (Multi?, Easy?) -> CURLMcode
    let multiAct: @convention(c) (Multi?, curl_socket_t, Int32, UnsafeMutablePointer<Int32>?) -> CURLMcode
    let multiRead: @convention(c) (Multi?, UnsafeMutablePointer<Int32>?) -> UnsafeMutablePointer<CURLMsg>?
    let multiEnd: @convention(c) (Multi?) -> CURLMcode
    let listAppend: @convention(c) (List?, UnsafePointer<CChar>?) -> List?
    let listEnd: @convention(c) (List?) -> Void
    let describe: @convention(c) (CURLcode) -> UnsafePointer<CChar>?
    let date: @convention(c) (UnsafePointer<CChar>?, UnsafePointer<time_t>?) -> time_t
    private let urlMake: @convention(c) () -> OpaquePointer?
    private let urlEnd: @convention(c) (OpaquePointer?) -> Void
    private let urlSet: @convention(c) (OpaquePointer?, CURLUPart, UnsafePointer<CChar>?, UInt32) -> CURLUcode
    private let urlGet:
        @convention(c) (
            OpaquePointer?, CURLUPart, UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?, UInt32
        ) -> CURLUcode
    private let free: @convention(c) (UnsafeMutableRawPointer?) -> Void
    /// Whether it is the OpenSSL flavour, judging by the library's name. curl_version(3) would look up this machine's
    /// name, for LDAP, and block.
    let usesOpenSSL: Bool
    /// Functions of the OpenSSL that libcurl uses; `nil` if it uses another library.
    let tls: UnsafeMutablePointer<shim_tls>?
    private let easySet: UnsafeMutableRawPointer
    private let easyGet: UnsafeMutableRawPointer
    private let multiSet: UnsafeMutableRawPointer

    /// The library's names on distributions, the OpenSSL flavour first.
    private static let names = ["libcurl.so.4", "libcurl-gnutls.so.4"]

    private init() throws(HTTPFailure) {
        guard let handle = Self.names.lazy.compactMap({ dlopen($0, RTLD_NOW | RTLD_LOCAL) }).first else {
            throw .libraryMissing(dlerror().map { String(cString: $0) } ?? "")
        }
        func symbol(_ name: String) throws(HTTPFailure) -> UnsafeMutableRawPointer {
            try Self.symbol(name, in: handle)
        }
        func function<Function>(_ name: String, _: Function.Type = Function.self) throws(HTTPFailure) -> Function {
            unsafeBitCast(try symbol(name), to: Function.self)
        }
        (easyMake, easyEnd) = (try function("curl_easy_init"), try function("curl_easy_cleanup"))
        easyPause = try function("curl_easy_pause")
        (multiMake, multiEnd) = (try function("curl_multi_init"), try function("curl_multi_cleanup"))
        (multiAdd, multiRemove) = (try function("curl_multi_add_handle"), try function("curl_multi_remove_handle"))
        (multiAct, multiRead) = (try function("curl_multi_socket_action"), try function("curl_multi_info_read"))
        (listAppend, listEnd) = (try function("curl_slist_append"), try function("curl_slist_free_all"))
        (describe, date) = (try function("curl_easy_strerror"), try function("curl_getdate"))
        (urlMake, urlEnd) = (try function("curl_url"), try function("curl_url_cleanup"))
        (urlSet, urlGet) = (try function("curl_url_set"), try function("curl_url_get"))
        free = try function("curl_free")
        (easySet, easyGet) = (try symbol("curl_easy_setopt"), try symbol("curl_easy_getinfo"))
        multiSet = try symbol("curl_multi_setopt")
        usesOpenSSL = dlopen(Self.names[0], RTLD_NOW | RTLD_NOLOAD) != nil
        tls = Self.tls(in: handle)
        let start: @convention(c) (Int) -> CURLcode = try function("curl_global_init")
        guard start(shim_global_default) == CURLE_OK else { throw .libraryMissing("it could not be started") }
    }

    private static func symbol(
        _ name: String, in handle: UnsafeMutableRawPointer
    ) throws(HTTPFailure) -> UnsafeMutableRawPointer {
        guard let symbol = dlsym(handle, name) else { throw .libraryMissing("it has no \(name)") }
        return symbol
    }

    /// Finds the functions of OpenSSL among the libraries that libcurl has loaded; `nil` if it uses none. They stay
    /// loaded, and so does this.
    private static func tls(in handle: UnsafeMutableRawPointer) -> UnsafeMutablePointer<shim_tls>? {
        func function<Function>(_ name: String) throws(HTTPFailure) -> Function {
            unsafeBitCast(try symbol(name, in: handle), to: Function.self)
        }
        var tls = shim_tls()
        do throws(HTTPFailure) {
            (tls.set_depth, tls.control) = (try function("SSL_CTX_set_verify_depth"), try function("SSL_CTX_ctrl"))
        } catch { return nil }
        do throws(HTTPFailure) {
            var verifying = tls
            verifying.set_verification = try function("SSL_CTX_set_cert_verify_callback")
            verifying.verify = try function("X509_verify_cert")
            verifying.set_error = try function("X509_STORE_CTX_set_error")
            verifying.sent = try function("X509_STORE_CTX_get0_untrusted")
            verifying.store = try function("X509_STORE_CTX_get0_store")
            verifying.objects = try function("X509_STORE_get0_objects")
            verifying.certificate = try function("X509_OBJECT_get0_X509")
            (verifying.count, verifying.element) = (try function("OPENSSL_sk_num"), try function("OPENSSL_sk_value"))
            (verifying.size, verifying.find) = (try function("i2d_X509"), try function("X509_get_ext_by_NID"))
            verifying.extension = try function("X509_get_ext")
            verifying.data = try function("X509_EXTENSION_get_data")
            verifying.length = try function("ASN1_STRING_length")
            tls = verifying
        } catch {
            // Another implementation of OpenSSL's interface: the comparisons stay unbounded.
        }
        do throws(HTTPFailure) {
            var watching = tls
            watching.set_observation = try function("SSL_CTX_set_info_callback")
            watching.set_messages = try function("SSL_CTX_set_msg_callback")
            watching.input = try function("SSL_get_rbio")
            watching.set_watch = try function("BIO_set_callback_ex")
            watching.set_note = try function("BIO_set_callback_arg")
            watching.note = try function("BIO_get_callback_arg")
            tls = watching
        } catch {
            // The same: the handshake stays unbounded.
        }
        let pointer = UnsafeMutablePointer<shim_tls>.allocate(capacity: 1)
        pointer.initialize(to: tls)
        return pointer
    }

    // MARK: Addresses

    /// Resolves a reference against a base address (RFC 3986, 5.2); `nil` if it is invalid or contains a user.
    ///
    /// The corresponding C function is ``curl_url_set``.
    func resolve(_ reference: String, from base: String) -> String? {
        guard reference.isPrintable, let url = urlMake() else { return nil }
        defer { urlEnd(url) }
        guard urlSet(url, CURLUPART_URL, base, 0) == CURLUE_OK,
            urlSet(url, CURLUPART_URL, reference, UInt32(CURLU_DISALLOW_USER)) == CURLUE_OK
        else { return nil }
        var text: UnsafeMutablePointer<CChar>?
        guard urlGet(url, CURLUPART_URL, &text, 0) == CURLUE_OK, let text else { return nil }
        defer { free(text) }
        return String(cString: text)
    }

    // MARK: Options

    func set(_ easy: Easy, _ option: CURLoption, _ value: Int) throws(HTTPFailure) {
        try check(shim_easy_set_number(easySet, easy, option, value))
    }

    func set(_ easy: Easy, size option: CURLoption, _ value: Int) throws(HTTPFailure) {
        try check(shim_easy_set_size(easySet, easy, option, curl_off_t(value)))
    }

    /// libcurl copies the value, unless the option is documented as keeping the pointer.
    func set(_ easy: Easy, _ option: CURLoption, _ value: String?) throws(HTTPFailure) {
        guard let value else { return try check(shim_easy_set_text(easySet, easy, option, nil)) }
        try check(value.withCString { shim_easy_set_text(easySet, easy, option, $0) })
    }

    func set(_ easy: Easy, pointer option: CURLoption, _ value: UnsafeRawPointer?) throws(HTTPFailure) {
        try check(shim_easy_set_pointer(easySet, easy, option, value))
    }

    func set(_ easy: Easy, authority: [UInt8]) throws(HTTPFailure) {
        let code = authority.withUnsafeBytes { bytes in
            var blob = curl_blob(
                data: UnsafeMutableRawPointer(mutating: bytes.baseAddress), len: bytes.count,
                flags: UInt32(CURL_BLOB_COPY))
            return shim_easy_set_pointer(easySet, easy, CURLOPT_CAINFO_BLOB, &blob)
        }
        try check(code)
    }

    func set(_ easy: Easy, body: [UInt8]) throws(HTTPFailure) {
        try set(easy, size: CURLOPT_POSTFIELDSIZE_LARGE, body.count)
        // An empty array may have no address, and a null pointer would mean that the data is still to come.
        let code = (body.isEmpty ? [0] : body).withUnsafeBytes {
            shim_easy_set_pointer(easySet, easy, CURLOPT_COPYPOSTFIELDS, $0.baseAddress)
        }
        try check(code)
    }

    func set(_ easy: Easy, _ option: CURLoption, _ callback: @escaping shim_data_callback) throws(HTTPFailure) {
        try check(shim_easy_set_data_callback(easySet, easy, option, callback))
    }

    func set(_ easy: Easy, _ callback: @escaping curl_ssl_ctx_callback) throws(HTTPFailure) {
        try check(shim_easy_set_tls_callback(easySet, easy, callback))
    }

    func set(_ easy: Easy, _ callback: @escaping curl_debug_callback) throws(HTTPFailure) {
        try check(shim_easy_set_debug_callback(easySet, easy, callback))
    }

    func set(_ easy: Easy, progress callback: @escaping curl_xferinfo_callback) throws(HTTPFailure) {
        try check(shim_easy_set_progress_callback(easySet, easy, callback))
    }

    func number(_ easy: Easy, _ info: CURLINFO) -> Int {
        var value = 0
        return shim_easy_get_number(easyGet, easy, info, &value) == CURLE_OK ? value : 0
    }

    func size(_ easy: Easy, _ info: CURLINFO) -> Int {
        var value: curl_off_t = 0
        return shim_easy_get_size(easyGet, easy, info, &value) == CURLE_OK ? Int(value) : 0
    }

    /// Makes a multi handle report its sockets and its timer; false if it can't.
    func connect(
        _ multi: Multi, _ object: UnsafeMutableRawPointer,
        sockets: @escaping curl_socket_callback, timer: @escaping curl_multi_timer_callback
    ) -> Bool {
        shim_multi_set_callbacks(multiSet, multi, sockets, timer) == CURLM_OK
            && shim_multi_set_pointer(multiSet, multi, CURLMOPT_SOCKETDATA, object) == CURLM_OK
            && shim_multi_set_pointer(multiSet, multi, CURLMOPT_TIMERDATA, object) == CURLM_OK
    }

    private func check(_ code: CURLcode) throws(HTTPFailure) {
        guard code == CURLE_OK else { throw .libraryMissing("it lacks a required feature: \(text(of: code))") }
    }

    func text(of code: CURLcode) -> String { describe(code).map { String(cString: $0) } ?? "\(code.rawValue)" }

    /// Returns the seconds since 1970 of a date in any of the forms that HTTP allows; `nil` if it is invalid.
    func seconds(of date: String) -> Int? {
        let seconds = self.date(date, nil)
        return seconds < 0 ? nil : seconds
    }
}
