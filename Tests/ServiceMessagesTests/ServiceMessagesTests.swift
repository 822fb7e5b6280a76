// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import ServiceMessages

@Suite struct ServiceMessagesTests {
    private let table = ServiceMessages([
        "There is no key \"{1}\".": "Es gibt keinen Schlüssel „{1}“.", "before": "vor", "after": "nach",
        "The server's clock is {1} {2} this device's.": "Die Uhr des Servers geht {1} {2}.",
        "{1} If it was deleted, make it again.": "{1} Wurde er gelöscht, legen Sie ihn neu an.",
        "There is no folder {1} on {2}.": "Auf {2} gibt es keinen Ordner {1}.",
        "There is no {1}.": "Es gibt nichts namens {1}.",
    ])

    @Test func `values move to their places, and the format that says most counts`() {
        #expect(table.translation(of: "There is no folder /a on b.") == "Auf b gibt es keinen Ordner /a.")
        #expect(table.translation(of: "There is no user.") == "Es gibt nichts namens user.")
        #expect(
            table.translation(of: "The server's clock is 3 s before this device's.")
                == "Die Uhr des Servers geht 3 s vor.")
    }

    @Test func `a message in a message is translated, and what is quoted is not`() {
        let nested = "There is no folder /a on b. If it was deleted, make it again."
        #expect(
            table.translation(of: nested) == "Auf b gibt es keinen Ordner /a. Wurde er gelöscht, legen Sie ihn neu an.")
        #expect(table.translation(of: #"There is no key "before"."#) == "Es gibt keinen Schlüssel „before“.")
        #expect(table.translation(of: #"There is no key "{1} {2}"."#) == "Es gibt keinen Schlüssel „{1} {2}“.")
    }

    @Test func `what is not known stays as it is`() {
        for message in ["", "Something else.", "There is no", "There is no key \"", "{1}"] {
            #expect(table.translation(of: message) == message)
        }
        #expect(ServiceMessages([:]).translation(of: "before") == "before")
    }

    @Test(arguments: [
        (
            #"There is no folder /dav on dav.example. If it was deleted, "ubiquitousctl account resolve local" creates it again from this device."#,
            #"Auf dav.example gibt es keinen Ordner /dav. Wurde der Ordner gelöscht, legt „ubiquitousctl account resolve local“ ihn von diesem Gerät aus wieder an."#
        ), (#"There is no store "a. B is on c"."#, #"„a. B is on c“"#),
        (
            "The certificate of a is not trusted: self-signed certificate. If the server has an authority of its own, sign in with its certificate. Name it.",
            "nicht vertraut: es ist selbst signiert. Hat der Server eine eigene"
        ),
    ])
    func `advice that follows a message is a sentence of its own`(message: String, german: String) {
        let translation = ServiceMessages(ServiceMessages.german).translation(of: message)
        #expect(translation.contains(german), "\(translation)")
    }
}
