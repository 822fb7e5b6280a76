// SPDX-License-Identifier: Apache-2.0

internal import Adwaita
internal import GLibLoop
internal import PanelModel

/// Asks for the recovery words of an encrypted account until they are right.
@MainActor
final class EnterWordsDialog {
    private static var shown: EnterWordsDialog?

    private let window: Window
    private let words: EntryRow
    private let problem: ActionRow
    private let spinner: Spinner
    private let cancel: Button
    private let next: Button
    private let use: @MainActor (String) async throws -> Void
    private let onDone: @MainActor () -> Void
    private var attempt: Task<Void, Never>?

    /// Opens the dialog, unless it is open.
    ///
    /// - Parameters:
    ///   - reason: why the words are needed, and where the user finds them.
    ///   - use: gives the account the words; its error is shown at the field.
    ///   - onDone: called when the dialog has closed because the words were right.
    static func open(
        over parent: Window, reason: String, use: @escaping @MainActor (String) async throws -> Void,
        onDone: @escaping @MainActor () -> Void
    ) {
        if shown != nil { return }
        shown = EnterWordsDialog(over: parent, reason, use, onDone)
    }

    private init(
        over parent: Window, _ reason: String, _ use: @escaping @MainActor (String) async throws -> Void,
        _ onDone: @escaping @MainActor () -> Void
    ) {
        let interface = Interface(PackageResources.enter_words_ui)
        (self.use, self.onDone) = (use, onDone)
        window = interface.widget("dialog")
        words = interface.widget("words")
        problem = interface.widget("problem")
        spinner = interface.widget("spinner")
        cancel = interface.widget("cancel")
        next = interface.widget("next")
        let group: PreferencesGroup = interface.widget("group")
        group.explanation = reason
        connect()
        window.attach(to: parent)
        window.present()
        words.focus()
    }

    private func connect() {
        words.onChange { [unowned self] in show(TypedWords.flawSoFar(words.text)) }
        words.onEnter { [unowned self] in tryWords() }
        next.onPress { [unowned self] in tryWords() }
        cancel.onPress { [unowned self] in if let attempt { attempt.cancel() } else { window.close() } }
        window.onClose { [unowned self] in
            attempt?.cancel()
            // Later, because the dialog must not be released during its own signal.
            MainThread.task { if Self.shown === self { Self.shown = nil } }
        }
    }

    private func show(_ flaw: String?) {
        words.isWrong = flaw != nil
        problem.isVisible = flaw != nil
        problem.title = flaw ?? ""
    }

    private func tryWords() {
        guard attempt == nil else { return }
        if let flaw = TypedWords.flaw(words.text) { return show(flaw) }
        show(nil)
        isBusy = true
        attempt = MainThread.task { [self] in
            var flaw: String?
            do {
                try await use(words.text)
                window.close()
                return onDone()
            } catch is CancellationError {
            } catch { flaw = TypedWords.sentence(error) }
            attempt = nil
            isBusy = false
            words.focusForCorrection()
            show(flaw)
        }
    }

    private var isBusy = false {
        didSet {
            spinner.isSpinning = isBusy
            if isBusy { cancel.focus() }
            for widget in [words, next] as [Widget] { widget.isSensitive = !isBusy }
        }
    }
}
