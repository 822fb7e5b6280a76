// SPDX-License-Identifier: Apache-2.0

internal import SDBus
internal import Sealing

/// The user's options for encryption when signing in.
struct EncryptionOptions {
    /// Whether to encrypt a new account.
    var encrypts = false
    /// The recovery phrase of an encrypted account.
    var phrase: RecoveryPhrase?
    /// Whether to ignore the markers of other keys than the phrase's.
    var rejectsOthers = false

    init(encrypts: Bool, phrase: String?, rejectsOthers: Bool = false) throws(BusError) {
        guard phrase != nil || !rejectsOthers else {
            throw .invalidArguments("\"reject-others\" needs a \"recovery-phrase\".")
        }
        (self.encrypts, self.rejectsOthers) = (encrypts, rejectsOthers)
        self.phrase = try phrase.map { text throws(BusError) in try Self.read(text) }
    }

    static func read(_ phrase: String) throws(BusError) -> RecoveryPhrase {
        do throws(RecoveryPhraseError) { return try RecoveryPhrase(reading: phrase) } catch {
            throw .invalidArguments("\(error)")
        }
    }
}
