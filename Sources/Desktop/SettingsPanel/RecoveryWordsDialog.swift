// SPDX-License-Identifier: Apache-2.0

internal import Adwaita
internal import GLibLoop
internal import PanelModel

/// Shows the recovery words for a minute, and only while its window has the keyboard focus. The words of a new account
/// have to be written down: they count as shown once the user has typed some of them from the note.
@MainActor
final class RecoveryWordsDialog {
    private let words: RecoveryWords
    private let isNew: Bool
    private weak var owner: PanelWindow?
    private let window: Window
    private let wordsGroup: PreferencesGroup
    private let testGroup: PreferencesGroup
    private let back: Button
    private let next: Button
    private let reveal: Button
    private var labels: [Label] = []
    private var fields: [(place: Int, entry: EntryRow)] = []
    private let problem = ActionRow(title: "")
    private var timer: Timer?

    /// How long the words can be read, in seconds.
    private static let time: UInt32 = 60

    init(_ words: RecoveryWords, isNew: Bool, over owner: PanelWindow) {
        (self.words, self.isNew, self.owner) = (words, isNew, owner)
        let interface = Interface(PackageResources.recovery_words_ui)
        window = interface.widget("dialog")
        wordsGroup = interface.widget("words_group")
        testGroup = interface.widget("test_group")
        back = interface.widget("back")
        next = interface.widget("next")
        reveal = interface.widget("reveal")
        fill(interface.widget("words"))
        fillTest()
        connect()
        showWords()
        window.attach(to: owner.window)
        window.present()
        next.focus()
    }

    private func connect() {
        back.onPress { [unowned self] in if testGroup.isVisible { showWords() } else { window.close() } }
        next.onPress { [unowned self] in showNextStep() }
        reveal.onPress { [unowned self] in showWords() }
        window.onActiveChange { [unowned self] in if !window.isActive { areHidden = true } }
        window.onClose { [weak owner] in MainThread.task { owner?.closeWords() } }
    }

    // MARK: The words

    /// Fills a box with the words and their numbers, in lines of three if there is room.
    private func fill(_ box: FlowBox) {
        for place in words.words.indices {
            let interface = Interface(PackageResources.word_ui)
            let (number, word): (Label, Label) = (interface.widget("number"), interface.widget("word"))
            number.text = String(place + 1)
            box.add(interface.widget("cell"))
            labels.append(word)
        }
    }

    private var areHidden = true {
        didSet {
            for (label, word) in zip(labels, words.words) { label.text = areHidden ? "••••••" : word }
            reveal.isVisible = areHidden
            timer = areHidden ? nil : Timer(after: Self.time) { [unowned self] in areHidden = true }
        }
    }

    private func showWords() {
        testGroup.isVisible = false
        wordsGroup.isVisible = true
        back.isVisible = isNew
        back.label = tr("_Later")
        next.label = isNew ? tr("C_ontinue") : tr("_Close")
        areHidden = false
        next.focus()
    }

    // MARK: The test

    private func fillTest() {
        for place in words.placesToTest() {
            let entry = EntryRow(title: tr("Word %1", String(place + 1)))
            entry.onChange { [unowned self, unowned entry] in
                entry.isWrong = false
                problem.isVisible = false
            }
            entry.onEnter { [unowned self] in showNextStep() }
            testGroup.add(entry)
            fields.append((place, entry))
        }
        problem.addPrefix(Image(icon: "dialog-warning-symbolic"))
        problem.addStyle("error")
        problem.isVisible = false
        testGroup.add(problem)
    }

    private func showTest() {
        areHidden = true
        wordsGroup.isVisible = false
        testGroup.isVisible = true
        back.label = tr("_Back")
        next.label = tr("_Done")
        fields.first?.entry.focus()
    }

    private func showNextStep() {
        if !isNew {
            owner?.perform { try await $0.confirmRecoveryWords() }
            return window.close()
        }
        if wordsGroup.isVisible { return showTest() }
        for (place, entry) in fields where !words.has(entry.text, at: place) {
            entry.isWrong = true
            problem.title = tr("Word %1 is wrong. Go back and compare it with your note.", String(place + 1))
            problem.isVisible = true
            entry.focus()
            return
        }
        owner?.perform({ try await $0.confirmRecoveryWords() }, done: tr("Keep the words in a safe place"))
        window.close()
    }
}
