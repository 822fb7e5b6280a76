// SPDX-License-Identifier: Apache-2.0

internal import SDBus
internal import Sealing

/// What the user says about encryption when signing in.
struct EncryptionWish {
    /// A new account is to be encrypted.
    var encrypts = false
    /// What opens an account that is.
    var phrase: RecoveryPhrase?
    /// Markers of other keys than the phrase's don't count.
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
