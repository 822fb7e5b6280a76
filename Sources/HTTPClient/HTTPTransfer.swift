// SPDX-License-Identifier: Apache-2.0

internal import CCurl
internal import EventLoop

/// A libcurl handle, which makes one request at a time.
@BusActor
final class HTTPTransfer {
    let curl: Curl
    let easy: Curl.Easy
    var continuation: CheckedContinuation<Result<HTTPResponse, HTTPFailure>, Never>?
    /// The socket in use.
    private(set) var socket: Int32?
    /// The timer of the checks for silence.
    var timer: EventSource?
    /// Called if data that libcurl kept during a pause is refused. libcurl doesn't report that by itself.
    var whenRefused: (() -> Void)?
    /// The session of the request under way.
    weak var session: HTTPSession?
    /// The timer that resumes a paused answer.
    private var pause: EventSource?
    /// The pieces and bytes of the body that were taken in this turn of the loop.
    private var turn = (pieces: 0, bytes: 0)
    /// The time of this turn, and how often libcurl has reported progress in it.
    private var (work, reports) = (WorkTime(), 0)
    /// The proxy in use.
    private(set) var proxy: HTTPProxy?
    let options: HTTPOptions
    private var request: HTTPRequest?
    private var response = HTTPResponse()
    private var headerBytes = 0
    private var receivedBytes = 0
    /// Why received data was refused.
    private var refusal: HTTPFailure?
    private var headers: Curl.List?
    /// The addresses of the request's host, as libcurl takes them.
    private var places: Curl.List?
    /// libcurl writes error texts here.
    let reason = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))

    private static let mostHeaderBytes = 64 << 10

    init(_ curl: Curl, _ options: HTTPOptions) throws(HTTPFailure) {
        guard let easy = curl.easyMake() else { throw .libraryMissing("it could not be started") }
        (self.curl, self.easy, self.options) = (curl, easy, options)
        reason.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        try setLimits()
        try setTrust(options)
        try setCallbacks()
        if HTTPProxy.isInEnvironment { try noteProxies() }
        try setPassword(options.credentials)
    }

    isolated deinit {
        curl.easyEnd(easy)
        curl.listEnd(headers)
        curl.listEnd(places)
        reason.deallocate()
    }

    /// Checks the name and the password, because libcurl doesn't: Digest copies the name into a header unescaped, and a
    /// zero byte would truncate either.
    private func setPassword(_ credentials: HTTPCredentials) throws(HTTPFailure) {
        guard case .password(let user, let password) = credentials else { return }
        guard user.isPrintable, password.isPrintable else {
            throw .unsendable("the user's name or the password has control characters in it")
        }
        try curl.set(easy, CURLOPT_USERNAME, user)
        try curl.set(easy, CURLOPT_PASSWORD, password)
    }

    private func setLimits() throws(HTTPFailure) {
        try curl.set(easy, CURLOPT_PROTOCOLS_STR, "http,https")
        try curl.set(easy, CURLOPT_HTTP_VERSION, shim_http_1_1)
        try curl.set(easy, CURLOPT_PATH_AS_IS, 1)
        try curl.set(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        // libcurl must not use the process's signals, nor block while it resolves a name.
        try curl.set(easy, CURLOPT_NOSIGNAL, 1)
        try curl.set(easy, CURLOPT_QUICK_EXIT, 1)
        // Nothing else would notice that the other side of a silent connection is gone.
        try curl.set(easy, CURLOPT_TCP_KEEPALIVE, 1)
    }

    private func setCallbacks() throws(HTTPFailure) {
        let object = UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
        try curl.set(easy, pointer: CURLOPT_WRITEDATA, object)
        try curl.set(easy, pointer: CURLOPT_HEADERDATA, object)
        try curl.set(easy, pointer: CURLOPT_ERRORBUFFER, UnsafeRawPointer(reason))
        try curl.set(easy, CURLOPT_WRITEFUNCTION) { data, size, count, object in
            HTTPTransfer.call(object, data, size * count, unless: { $0.pauses() }) { $0.take(body: $1) }
        }
        try curl.set(easy, CURLOPT_HEADERFUNCTION) { data, size, count, object in
            HTTPTransfer.call(object, data, size * count) { $0.take(header: $1) }
        }
        try curl.set(easy, pointer: CURLOPT_XFERINFODATA, object)
        try curl.set(easy, progress: { object, _, _, _, _ in HTTPTransfer.isTooLong(object) ? 1 : 0 })
        try curl.set(easy, CURLOPT_NOPROGRESS, 0)
    }

    /// Finds out which proxy libcurl uses. In some versions of the library only its messages say so.
    private func noteProxies() throws(HTTPFailure) {
        let object = UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
        try curl.set(easy, pointer: CURLOPT_DEBUGDATA, object)
        try curl.set(easy) { _, kind, text, count, object in
            guard kind == CURLINFO_TEXT else { return 0 }
            _ = HTTPTransfer.call(object, text, count) { transfer, text in
                if let proxy = HTTPProxy(said: String(decoding: text, as: UTF8.self)) { transfer.proxy = proxy }
                return true
            }
            return 0
        }
        try curl.set(easy, CURLOPT_VERBOSE, 1)
    }

    /// Records that libcurl starts or stops using a socket.
    func note(_ socket: Int32, isUsed: Bool) {
        if isUsed { self.socket = socket } else if self.socket == socket { self.socket = nil }
    }

    // MARK: Asking

    /// - Parameter addresses: those of the request's host; `nil` if libcurl is to find them.
    func prepare(_ request: HTTPRequest, _ scheme: HTTPScheme?, at addresses: [String]?) throws(HTTPFailure) {
        self.request = request
        (response, headerBytes, receivedBytes, refusal, proxy) = (HTTPResponse(), 0, 0, nil, nil)
        reason[0] = 0
        try curl.set(easy, CURLOPT_URL, request.address.description)
        // A proxy can't reach this machine's loopback.
        try curl.set(easy, CURLOPT_NOPROXY, request.address.isLoopback ? "*" : nil)
        try curl.set(easy, CURLOPT_HTTPAUTH, scheme.bits)
        try curl.set(easy, CURLOPT_NOBODY, 0)
        if let body = request.body { try curl.set(easy, body: body) } else { try curl.set(easy, CURLOPT_HTTPGET, 1) }
        // The answer to HEAD states a length but has no body.
        if request.method == "HEAD" { try curl.set(easy, CURLOPT_NOBODY, 1) }
        try curl.set(easy, CURLOPT_CUSTOMREQUEST, request.method)
        try setPatience(request.patience)
        try setHeaders(request)
        try setPlaces(request.address, addresses)
    }

    /// Tells libcurl the addresses of the host, so that it looks up none.
    private func setPlaces(_ address: HTTPAddress, _ addresses: [String]?) throws(HTTPFailure) {
        // libcurl knows these names in another form.
        let isPlain = address.host.utf8.allSatisfy { $0 < 0x80 } && !address.host.hasSuffix(".")
        let entry = addresses.map { "\(isPlain ? address.host : "*"):\(address.port):\($0.joined(separator: ","))" }
        let former = places
        places = entry.flatMap { curl.listAppend(nil, $0) }
        try curl.set(easy, pointer: CURLOPT_RESOLVE, UnsafeRawPointer(places))
        curl.listEnd(former)
    }

    /// Sets the time limits. Zero means none.
    private func setPatience(_ patience: HTTPRequest.Patience) throws(HTTPFailure) {
        var (whole, stall) = (options.wholeTime, max(.seconds(1), options.stallTime))
        switch patience {
        case .usual: break
        // HTTPSilence measures it, by what the kernel has moved.
        case .silence(let limit): (whole, stall) = (whole == .zero ? .zero : max(whole, limit * 4), .zero)
        case .endless: (whole, stall) = (.zero, .zero)
        }
        if let deadline = options.deadline {
            let left = max(.seconds(1), ContinuousClock.now.duration(to: deadline))
            whole = whole == .zero ? left : min(whole, left)
        }
        try curl.set(easy, CURLOPT_CONNECTTIMEOUT_MS, options.connectTime.milliseconds)
        try curl.set(easy, CURLOPT_TIMEOUT_MS, whole.milliseconds)
        // With a limit, libcurl wakes up every second, whatever the time.
        try curl.set(easy, CURLOPT_LOW_SPEED_LIMIT, stall == .zero ? 0 : 16)
        try curl.set(easy, CURLOPT_LOW_SPEED_TIME, stall.milliseconds / 1000)
    }

    private func setHeaders(_ request: HTTPRequest) throws(HTTPFailure) {
        var lines = ["User-Agent: UbiquitousStore", "Accept-Encoding: identity", "Accept: */*"]
        // By default libcurl declares the body a form, and waits for permission to send a long one.
        lines += ["Expect:", "Content-Type:"].filter { line in
            !request.headers.contains { line.lowercased().hasPrefix($0.name.lowercased() + ":") }
        }
        lines += request.headers.map { "\($0.name): \($0.value)" }
        if case .token(let token) = options.credentials { lines.append("Authorization: Bearer \(token)") }
        guard lines.allSatisfy(\.isPrintable) else {
            throw .unsendable("a header has control characters in it")
        }
        curl.listEnd(headers)
        headers = lines.reduce(nil) { list, line in curl.listAppend(list, line) ?? list }
        try curl.set(easy, pointer: CURLOPT_HTTPHEADER, UnsafeRawPointer(headers))
    }

    /// Resets the state of the request.
    func finish() {
        (request, timer, pause, socket, whenRefused) = (nil, nil, nil, nil, nil)
        response = HTTPResponse()
    }

    // MARK: Answers

    private nonisolated static func call(
        _ object: UnsafeMutableRawPointer?, _ data: UnsafeMutablePointer<CChar>?, _ count: Int,
        unless waits: @escaping @BusActor (HTTPTransfer) -> Bool = { _ in false },
        _ take: @escaping @BusActor (HTTPTransfer, UnsafeRawBufferPointer) -> Bool
    ) -> Int {
        let data = UnsafeRawBufferPointer(start: data, count: count)
        return BusActor.assumeIsolated(lending: (object, data, waits, take)) { object, data, waits, take in
            guard let object else { return 0 }
            let transfer = Unmanaged<HTTPTransfer>.fromOpaque(object).takeUnretainedValue()
            // libcurl will deliver the same piece again.
            if waits(transfer) { return Int(CURL_WRITEFUNC_PAUSE) }
            // Any number other than the piece's length ends the transfer.
            return take(transfer, data) ? data.count : data.count &- 1
        }
    }

    private func take(header data: UnsafeRawBufferPointer) -> Bool {
        headerBytes += data.count
        guard headerBytes <= Self.mostHeaderBytes else { return refuse(.tooLarge(host)) }
        // Bytes, not characters: a server decides how long it takes to find these.
        if data.starts(with: "HTTP/".utf8) {
            response = HTTPResponse()
            let status = data.split(separator: UInt8(ascii: " ")).dropFirst().first?.prefix(3)
            response.status = status.flatMap { Int(String(decoding: $0, as: UTF8.self)) } ?? 0
            receivedBytes = 0
        } else if let colon = data.firstIndex(of: UInt8(ascii: ":")) {
            note(data[..<colon], data[(colon + 1)...])
        }
        return !Self.announcesCompression(data) || refuse(.corrupt(host))
    }

    /// Whether a header says that the body was compressed for the way. libcurl decompresses it, even though the request
    /// has not offered that (RFC 9110, 10.1.4), and ten thousand bytes can become gigabytes.
    private static func announcesCompression(_ header: UnsafeRawBufferPointer) -> Bool {
        let name = "transfer-encoding:".utf8
        guard header.count > name.count, zip(header, name).allSatisfy({ $0 | 0x20 == $1 }) else { return false }
        let coding = header.dropFirst(name.count).filter { $0 > 0x20 }
        return !["chunked", "identity"].contains(String(decoding: coding, as: UTF8.self).lowercased())
    }

    private static let longestOtherText = 1024

    /// Notes a header. Names are ASCII (RFC 9110, section 5.1). Long values that aren't ASCII belong to headers that
    /// are not used.
    private func note(_ name: Slice<UnsafeRawBufferPointer>, _ value: Slice<UnsafeRawBufferPointer>) {
        let value = value.drop { $0 == 0x20 || $0 == 0x09 }.prefix { $0 != 0x0A && $0 != 0x0D }
        guard name.allSatisfy({ $0 < 0x80 }), value.count <= Self.longestOtherText || value.allSatisfy({ $0 < 0x80 })
        else { return }
        note(String(decoding: name, as: UTF8.self).lowercased(), String(decoding: value, as: UTF8.self))
    }

    private func note(_ name: String, _ value: String) {
        if name == "www-authenticate", let former = response.headers[name] {
            response.headers[name] = former + ", " + value
        } else {
            response.headers[name] = value
        }
    }

    private func take(body data: UnsafeRawBufferPointer) -> Bool {
        guard let request else { return false }
        turn = (turn.pieces + 1, turn.bytes + data.count)
        if let sink = request.sink, sink.status == response.status {
            return sink.take(data) || refuse(.tooLarge(host))
        }
        receivedBytes += data.count
        // The beginning of an error's body is enough.
        let isAnswer = (200..<300).contains(response.status)
        guard receivedBytes <= request.limit || !isAnswer else { return refuse(.tooLarge(host)) }
        let kept = data.prefix(max(0, request.limit - response.body.count))
        guard request.mayKeep(kept.count) else { return refuse(.noRoom(host)) }
        response.body += kept
        return receivedBytes <= Self.mostUselessBytes || isAnswer || refuse(.tooLarge(host))
    }

    private static let mostUselessBytes = 1 << 20

    /// Begins a turn of the loop.
    func beginTurn(_ work: WorkTime) {
        turn = (0, 0)
        (self.work, reports) = (work, 0)
    }

    /// Whether this turn of the loop has taken so long that the transfer has to fail. libcurl reads a proxy's answer byte
    /// by byte, for as long as the proxy sends, and only reports progress meanwhile.
    private nonisolated static func isTooLong(_ object: UnsafeMutableRawPointer?) -> Bool {
        BusActor.assumeIsolated(lending: object) { object in
            guard let object else { return false }
            let transfer = Unmanaged<HTTPTransfer>.fromOpaque(object).takeUnretainedValue()
            transfer.reports += 1
            return transfer.reports % 256 == 0 && transfer.work.taken(ifAtLeast: longestTurn) > 0
        }
    }

    /// The processor time that libcurl may take for the transfer in a turn, in microseconds.
    private nonisolated static let longestTurn: UInt64 = 250_000

    /// Pauses the transfer while the sink processes what it has received, and when the loop's next turn is due. libcurl
    /// reads on as long as a server sends faster than it reads, and a server may send bytes one by one.
    private func pauses() -> Bool {
        let isBusy = request?.sink.map { $0.status == response.status && $0.isBusy() } ?? false
        guard isBusy || turn.pieces >= Self.mostPieces || turn.bytes >= Self.mostBytes else { return false }
        pause = EventLoop.shared.after(isBusy ? Self.sinkPause : .zero) { [weak self] in self?.resume() }
        return true
    }

    private func resume() {
        pause = nil
        if session?.isResting == true {
            pause = EventLoop.shared.after(Self.sinkPause) { [weak self] in self?.resume() }
            return
        }
        let work = WorkTime()
        beginTurn(work)
        if curl.easyPause(easy, CURLPAUSE_CONT) != CURLE_OK { whenRefused?() }
        session?.note(work)
    }

    private static let sinkPause = Duration.milliseconds(5)
    /// The limits of a body in a turn of the loop.
    private static let (mostPieces, mostBytes) = (1024, 256 << 10)

    private func refuse(_ failure: HTTPFailure) -> Bool {
        refusal = failure
        return false
    }

    var host: String { request?.address.host ?? "" }
    /// The server's host, with the port unless it is the default.
    var place: String { request?.address.authority ?? "" }

    /// Returns the outcome of the request.
    func result(_ code: CURLcode) -> Result<HTTPResponse, HTTPFailure> {
        if let refusal { return .failure(refusal) }
        guard code == CURLE_OK else { return .failure(failure(code)) }
        guard response.status >= 200 else { return .failure(.corrupt(host)) }
        response.date = response.headers["date"].flatMap(curl.seconds(of:))
        response.retryAfter = response.headers["retry-after"].flatMap(retryAfter)
        return .success(response)
    }

    /// Parses `Retry-After`: seconds, or a date by the server's clock.
    private func retryAfter(_ text: String) -> Int? {
        if let seconds = Int(text) { return max(0, seconds) }
        guard let date = curl.seconds(of: text), let now = response.date else { return nil }
        return max(0, date - now)
    }
}

extension Duration {
    fileprivate var milliseconds: Int {
        Int(components.seconds) * 1000 + Int(components.attoseconds / 1_000_000_000_000_000)
    }
}
