// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Synchronization

/// The changes that a loop over a store's changes has not taken yet.
///
/// It stays bounded however slow the loop is: a change is merged with the waiting one before it if an app handles both
/// in the same way, and beyond ``maximumCount`` the two oldest are merged. A loop that goes from old values to new ones
/// misses only intermediate values.
struct ChangeBacklog {
    static let maximumCount = 16

    private(set) var waiting: [Announcement] = []

    mutating func append(_ announcement: Announcement) {
        if let last = waiting.last, last.isLike(announcement) {
            waiting.removeLast()
            if let joined = last.joined(with: announcement) { waiting.append(joined) }
        } else {
            waiting.append(announcement)
        }
        guard waiting.count > Self.maximumCount else { return }
        let joined = waiting[0].joined(with: waiting[1])
        waiting.replaceSubrange(0..<2, with: joined.map { [$0] } ?? [])
    }

    mutating func takeFirst() -> Announcement? {
        waiting.isEmpty ? nil : waiting.removeFirst()
    }
}

/// Receives a store's announcements for a loop, from its creation until it is released or ended.
final class ChangeInbox: Sendable {
    private struct State {
        var backlog = ChangeBacklog()
        var loops: [CheckedContinuation<Announcement?, Never>] = []
        var isOpen = true
    }

    private let store: SharedStore
    private let observer = Mutex<UUID?>(nil)
    private let state = Mutex(State())

    init(_ store: SharedStore) {
        self.store = store
        let observer = store.observe { [weak self] in self?.receive($0) }
        self.observer.withLock { $0 = observer }
    }

    deinit { stopObserving() }

    /// Waits for the next announcement; `nil` after the end.
    func next() async -> Announcement? {
        await withCheckedContinuation { loop in
            let answer: Announcement?? = state.withLock { state in
                if let first = state.backlog.takeFirst() { return first }
                if state.isOpen { state.loops.append(loop) }
                return state.isOpen ? .none : .some(nil)
            }
            if let answer { loop.resume(returning: answer) }
        }
    }

    /// Ends all loops.
    func end() {
        stopObserving()
        let loops = state.withLock { state in
            defer { state = State(isOpen: false) }
            return state.loops
        }
        for loop in loops { loop.resume(returning: nil) }
    }

    private func receive(_ announcement: Announcement) {
        let loop: CheckedContinuation<Announcement?, Never>? = state.withLock { state in
            if !state.loops.isEmpty { return state.loops.removeFirst() }
            if state.isOpen { state.backlog.append(announcement) }
            return nil
        }
        loop?.resume(returning: announcement)
    }

    private func stopObserving() {
        if let observer = observer.withLock({ $0.take() }) { store.stopObserving(observer) }
    }
}
