// SPDX-License-Identifier: Apache-2.0

// libcurl's multi interface on sd_event: libcurl says which sockets to wait for and when to call it next, and this
// class reports what happened. It calls no function of libcurl from within a callback of libcurl.

internal import CCurl
internal import EventLoop

/// The transfers of a client and their connections.
@BusActor
final class HTTPSession {
    let options: HTTPOptions
    private var multi: Curl.Multi?
    private var sockets: [Int32: EventSource] = [:]
    /// What libcurl waits for, by socket.
    private var watched: [Int32: Readiness] = [:]
    private var timer: EventSource?
    private var keepTimer: EventSource?
    private var transfers: [Curl.Easy: HTTPTransfer] = [:]
    /// A used handle to use again, since it keeps its Digest state. One is enough for sequential requests.
    private var idle: HTTPTransfer?
    /// The authentication scheme, once known.
    private var scheme: HTTPScheme?
    private var isClosed = false
    private var share = LoopShare()
    /// The rest that is under way.
    private var rest: Rest?
    /// Whether libcurl's timer has run out during a rest.
    private var isDue = false
    private let addresses: HTTPAddresses
    private var pauses: [Int: (timer: EventSource, continuation: CheckedContinuation<Void, Never>)] = [:]

    nonisolated init(_ options: HTTPOptions) { (self.options, addresses) = (options, HTTPAddresses(options)) }

    // MARK: Requests

    func send(_ request: HTTPRequest) async throws(HTTPFailure) -> HTTPResponse {
        var request = request
        for _ in 0...Self.mostRedirections {
            let response = try await authenticate(request)
            guard let place = try redirection(response, from: request) else { return response }
            request.address = place
        }
        throw .redirections(request.address.host)
    }

    private static let mostRedirections = 5

    /// Returns the target of a redirection; `nil` if the answer is final.
    private func redirection(
        _ response: HTTPResponse, from request: HTTPRequest
    ) throws(HTTPFailure) -> HTTPAddress? {
        guard [301, 302, 303, 307, 308].contains(response.status), let location = response.headers["location"] else {
            return nil
        }
        guard let place = request.address.resolving(location, by: try Curl.load()) else {
            throw .corrupt(request.address.host)
        }
        guard place.hasSameOrigin(as: request.address) else {
            throw .sentAway(request.address.host, to: place.origin)
        }
        // 303 leads to a page to display, which never answers a request of ours.
        return response.status == 303 ? nil : place
    }

    /// Sends a request with credentials, in the scheme that the server requires.
    ///
    /// Over TLS it sends the password at once, so no decision depends on an answer to an unauthenticated request.
    /// Otherwise it sends no password before a refusal names the scheme; any other answer, even an intermediary's page,
    /// is final.
    private func authenticate(_ request: HTTPRequest) async throws(HTTPFailure) -> HTTPResponse {
        guard case .password = options.credentials else { return try await transfer(request, .none) }
        let known = scheme ?? (request.address.isSecure ? .basic : nil)
        let response = try await transfer(request, known)
        guard let wanted = HTTPScheme(response), wanted != known else { return response }
        // On an unencrypted connection, never fall back from Digest to Basic, which reveals the password.
        if known == .digest, !request.address.isSecure { return response }
        scheme = wanted
        return try await transfer(request, wanted)
    }

    private func transfer(_ request: HTTPRequest, _ scheme: HTTPScheme?) async throws(HTTPFailure) -> HTTPResponse {
        if isClosed { throw .closed }
        let found: [String]?
        do throws(HTTPFailure) { found = try await addresses.find(request.address.host) } catch {
            throw isClosed ? .closed : error
        }
        if isClosed { throw .closed }
        let curl = try Curl.load()
        let multi = try connectedMulti(curl)
        let transfer = try nextTransfer(curl)
        try transfer.prepare(request, scheme, at: found)
        transfer.session = self
        transfer.whenRefused = { [weak self, weak transfer] in
            guard let self, let transfer else { return }
            end(transfer, transfer.result(CURLE_WRITE_ERROR))
        }
        keepTimer = nil
        transfers[transfer.easy] = transfer
        let result: Result<HTTPResponse, HTTPFailure> = await withCheckedContinuation { continuation in
            // The session may have been closed meanwhile.
            if transfers[transfer.easy] !== transfer { return continuation.resume(returning: .failure(.closed)) }
            transfer.continuation = continuation
            if curl.multiAdd(multi, transfer.easy) != CURLM_OK {
                end(transfer, .failure(.libraryMissing("it can't start a request")))
            } else if case .silence(let limit) = request.patience {
                listen(to: transfer, HTTPSilence(limit: limit))
            }
        }
        return try result.get()
    }

    /// Ends a transfer on which no data moves any more.
    private func listen(to transfer: HTTPTransfer, _ silence: HTTPSilence) {
        var silence = silence
        let interval = silence.interval
        transfer.timer = EventLoop.shared.after(interval, accuracy: interval / 10) { [weak self, weak transfer] in
            guard let self, let transfer else { return }
            if silence.hasLasted(on: transfer.socket) { return end(transfer, .failure(transfer.timeout)) }
            listen(to: transfer, silence)
        }
    }

    // MARK: What libcurl wants

    private func nextTransfer(_ curl: Curl) throws(HTTPFailure) -> HTTPTransfer {
        guard let idle else { return try HTTPTransfer(curl, options) }
        self.idle = nil
        return idle
    }

    private func connectedMulti(_ curl: Curl) throws(HTTPFailure) -> Curl.Multi {
        if let multi { return multi }
        let object = Unmanaged.passUnretained(self).toOpaque()
        guard let multi = curl.multiMake() else { throw .libraryMissing("it could not be started") }
        let isConnected = curl.connect(
            multi, object,
            sockets: { easy, socket, what, object, _ in
                HTTPSession.call((object, easy)) { $0.watch(socket, what, of: $1) }
            },
            timer: { _, milliseconds, object in
                HTTPSession.call((object, nil)) { session, _ in session.setTimer(milliseconds) }
            })
        guard isConnected else {
            _ = curl.multiEnd(multi)
            throw .libraryMissing("it has no sockets to wait for")
        }
        self.multi = multi
        return multi
    }

    private nonisolated static func call(
        _ objects: (session: UnsafeMutableRawPointer?, easy: Curl.Easy?),
        _ body: @escaping @BusActor (HTTPSession, Curl.Easy?) -> Void
    ) -> Int32 {
        BusActor.assumeIsolated(lending: (objects, body)) { objects, body in
            guard let session = objects.session else { return }
            body(Unmanaged<HTTPSession>.fromOpaque(session).takeUnretainedValue(), objects.easy)
        }
        return 0
    }

    private func watch(_ socket: Int32, _ what: Int32, of easy: Curl.Easy?) {
        if let easy { transfers[easy]?.note(socket, isUsed: what != CURL_POLL_REMOVE) }
        // Releasing the source is not enough, since its action may be running.
        sockets.removeValue(forKey: socket)?.cancel()
        var readiness: Readiness = []
        if what & CURL_POLL_IN != 0 { readiness.insert(.read) }
        if what & CURL_POLL_OUT != 0 { readiness.insert(.write) }
        watched[socket] = readiness.isEmpty || what == CURL_POLL_REMOVE ? nil : readiness
        if !isResting { listen(on: socket) }
    }

    private func listen(on socket: Int32) {
        guard let readiness = watched[socket] else { return }
        sockets[socket] = EventLoop.shared.onReady(socket, for: readiness) { [weak self] readiness in
            self?.act(socket, readiness)
        }
    }

    private func stopListening() {
        for source in sockets.values { source.cancel() }
        sockets = [:]
    }

    private func setTimer(_ milliseconds: Int) {
        timer = nil
        if milliseconds < 0 { return }
        timer = EventLoop.shared.after(.milliseconds(milliseconds)) { [weak self] in
            guard let self else { return }
            timer = nil
            if isResting { isDue = true } else { act(curl_socket_t(-1), []) }
        }
    }

    private func act(_ socket: Int32, _ readiness: Readiness) {
        guard let multi, let curl = try? Curl.load() else { return }
        let work = WorkTime()
        defer { note(work) }
        var events: Int32 = 0
        if readiness.contains(.read) { events |= CURL_CSELECT_IN }
        if readiness.contains(.write) { events |= CURL_CSELECT_OUT }
        if !readiness.isDisjoint(with: [.error, .hangup]) { events |= CURL_CSELECT_ERR }
        for transfer in transfers.values { transfer.beginTurn(work) }
        var running: Int32 = 0
        _ = curl.multiAct(multi, socket, events, &running)
        while let message = curl.multiRead(multi, &running) {
            guard message.pointee.msg == CURLMSG_DONE, let transfer = transfers[message.pointee.easy_handle] else {
                continue
            }
            end(transfer, transfer.result(shim_message_result(message)))
        }
    }

    // MARK: Resting

    // A server decides what there is to do: it may send without end, have each connection closed and make each handshake
    // long. So libcurl has a share of the loop's time.

    /// The longest rest after one piece of work, in microseconds, and the longest of all, during which no connection may
    /// time out.
    private static let (longestRest, longestSharedRest): (UInt64, UInt64) = (5_000_000, 10_000_000)

    /// A rest, which counts as long as it lasts.
    @BusActor
    private final class Rest {
        /// The number of sessions that rest, by their users.
        private static var counts: [UInt32: Int] = [:]
        private let owner: UInt32?
        var end: EventSource?

        init(of owner: UInt32?) {
            self.owner = owner
            if let owner { Self.counts[owner, default: 0] += 1 }
        }

        isolated deinit {
            guard let owner else { return }
            let others = Self.counts[owner, default: 1] - 1
            Self.counts[owner] = others == 0 ? nil : others
        }

        /// How many times longer it is because other sessions rest: those of its user, and other users. So all of them
        /// together leave most of the time to others, and one user lengthens another's rest no more than any other does.
        var factor: UInt64 {
            guard let owner else { return 1 }
            return UInt64(Self.counts.count * Self.counts[owner, default: 1])
        }
    }

    /// Whether libcurl isn't called for now.
    var isResting: Bool { rest != nil }

    /// Counts work, and rests after much of it.
    func note(_ work: WorkTime) {
        guard let taken = share.take(EventLoop.now, work.taken(ifAtLeast: 1)), !isClosed else { return }
        options.whenBusy?(taken)
        let rest = rest ?? Rest(of: options.owner)
        self.rest = rest
        let time = min(min(taken * LoopShare.rest, Self.longestRest) * rest.factor, Self.longestSharedRest)
        stopListening()
        rest.end = EventLoop.shared.after(.microseconds(Int64(time))) { [weak self] in self?.endRest() }
    }

    private func endRest() {
        rest = nil
        for socket in watched.keys { listen(on: socket) }
        guard isDue else { return }
        isDue = false
        act(curl_socket_t(-1), [])
    }

    // MARK: Waiting

    func pause(for time: Duration) async {
        await withCheckedContinuation { continuation in
            if isClosed { return continuation.resume() }
            let number = pauses.keys.max().map { $0 + 1 } ?? 0
            let timer = EventLoop.shared.after(time, accuracy: time / 4) { [weak self] in self?.endPause(number) }
            pauses[number] = (timer, continuation)
        }
    }

    private func endPause(_ number: Int) { pauses.removeValue(forKey: number)?.continuation.resume() }

    // MARK: Ending

    private func end(_ transfer: HTTPTransfer, _ result: Result<HTTPResponse, HTTPFailure>) {
        if let multi { _ = transfer.curl.multiRemove(multi, transfer.easy) }
        transfers[transfer.easy] = nil
        let continuation = transfer.continuation
        transfer.continuation = nil
        transfer.finish()
        if !isClosed { idle = transfer }
        if transfers.isEmpty { keepForAWhile() }
        continuation?.resume(returning: result)
    }

    /// Closes the connections some time after the last answer, so that they cause no wakeups and the server need not
    /// keep them for a poll in five minutes.
    private func keepForAWhile() {
        keepTimer = EventLoop.shared.after(options.keepTime, accuracy: options.keepTime / 4) { [weak self] in
            self?.closeConnections()
        }
    }

    private func closeConnections() {
        keepTimer = nil
        if let multi, transfers.isEmpty, let curl = try? Curl.load() {
            _ = curl.multiEnd(multi)
            self.multi = nil
            timer = nil
            stopListening()
            watched = [:]
        }
    }

    func close() {
        (isClosed, rest) = (true, nil)
        for transfer in transfers.values { end(transfer, .failure(.closed)) }
        idle = nil
        addresses.close()
        for number in pauses.keys { endPause(number) }
        closeConnections()
    }
}
