// SPDX-License-Identifier: Apache-2.0

extension Catalogue {
    /// The German translations, by their English sentences. To add a language, copy this file, translate the right-hand
    /// sides, and add it to ``languages``. A test names missing sentences and those out of order.
    static let german = Catalogue(sentences: [
        "  See '{1}' for more information.": "  Mehr dazu: „{1}“",
        "\"openssl x509 -inform DER -in FILE\" converts one.": "„openssl x509 -inform DER -in DATEI“ wandelt eines um.",
        "\"ubiquitousctl account devices\" lists them.": "„ubiquitousctl account devices“ listet die Geräte auf.",
        "\"ubiquitousctl account encrypt\" encrypts it.": "„ubiquitousctl account encrypt“ verschlüsselt es.",
        """
        "ubiquitousctl account phrase" shows the recovery phrase on another device. Where this device is signed in, \
        enter it with "ubiquitousctl account unlock"; otherwise sign in again with --phrase-file.
        """:
            """
        „ubiquitousctl account phrase“ zeigt die Wiederherstellungswörter auf einem anderen Gerät. Ist dieses Gerät \
        angemeldet, geben Sie sie mit „ubiquitousctl account unlock“ ein; sonst melden Sie es noch einmal mit \
        --phrase-file an.
        """,
        "\"ubiquitousctl account phrase\" shows the words, and --forget-key leaves the account without them.":
            "„ubiquitousctl account phrase“ zeigt die Wörter; mit --forget-key geht es ohne sie.",
        "\"ubiquitousctl account resolve --help\" says how to keep them; --discard-changes removes them.":
            "„ubiquitousctl account resolve --help“ sagt, wie sie erhalten bleiben; --discard-changes entfernt sie.",
        "\"ubiquitousctl account resolve local\" does that.":
            "Das macht „ubiquitousctl account resolve local“.",
        """
        "ubiquitousctl account resolve local" restores this device's account there. To join the other one instead, \
        note the words of "ubiquitousctl account phrase", sign out, and sign in again.
        """:
            """
        „ubiquitousctl account resolve local“ stellt das Konto dieses Geräts dort wieder her. Soll stattdessen das \
        andere gelten, notieren Sie die Wörter aus „ubiquitousctl account phrase“, melden Sie das Gerät ab und wieder an.
        """,
        "\"ubiquitousctl account resume\" ends the pause.": "„ubiquitousctl account resume“ setzt ihn fort.",
        "\"ubiquitousctl account sync\" says what is wrong; --discard-changes removes them.":
            "„ubiquitousctl account sync“ sagt, woran es liegt; --discard-changes entfernt sie.",
        "\"ubiquitousctl account unlock\" uploads them; --discard-changes removes them.":
            "„ubiquitousctl account unlock“ lädt sie hoch; --discard-changes entfernt sie.",
        "\"ubiquitousctl admin adopt --replace {1} {2}\" replaces their data with it.":
            "„ubiquitousctl admin adopt --replace {1} {2}“ ersetzt die vorhandenen Daten durch die aus der Sicherung.",
        "\"ubiquitousctl admin list\" lists all data.": "„ubiquitousctl admin list“ listet alle Daten auf.",
        "\"ubiquitousctl doctor\" tries it step by step; with an address after it, also before signing in there.":
            """
        „ubiquitousctl doctor“ prüft den Speicherort Schritt für Schritt; mit einer Adresse dahinter auch vor der \
        Anmeldung dort.
        """,
        "\"ubiquitousctl identify\" lists the identifiers that installed manifests declare.":
            "„ubiquitousctl identify“ listet die Kennungen aus installierten Manifesten auf.",
        "\"ubiquitousctl identify\" lists what installed manifests declare.":
            "„ubiquitousctl identify“ listet auf, was in installierten Manifesten steht.",
        "\"ubiquitousctl remove\" removes a key; put -string before null if it is meant as text.":
            "„ubiquitousctl remove“ entfernt einen Schlüssel; ist Text gemeint, gehört -string vor null.",
        "\"ubiquitousctl stores remove IDENTIFIER\" removes those of a store.":
            "„ubiquitousctl stores remove KENNUNG“ entfernt die Werte eines Speichers.",
        "\"ubiquitousctl stores sync IDENTIFIER on\" uploads them; --discard-changes removes them.":
            "„ubiquitousctl stores sync KENNUNG on“ lädt sie hoch; --discard-changes entfernt sie.",
        "\"ubiquitousctl usage\" shows what takes up the space.": "„ubiquitousctl usage“ zeigt, was den Platz belegt.",
        "\"ubiquitousctl{1} --help\" lists the subcommands.": "„ubiquitousctl{1} --help“ listet die Unterbefehle auf.",
        "\"ubiquitousctl{1} --help\" says what it takes.": "„ubiquitousctl{1} --help“ zeigt, was Sie angeben können.",
        "\"{1}\" has {2} bytes, and a manifest has {3} at most.":
            "„{1}“ hat {2} Bytes; ein Manifest darf höchstens {3} haben.",
        "\"{1}\" is a file's address; that of a folder is {2}.":
            "„{1}“ ist die Adresse einer Datei; die eines Ordners ist {2}.",
        "\"{1}\" is a path; the address of that folder is {2}.":
            "„{1}“ ist ein Pfad; die Adresse dieses Ordners ist {2}.",
        "\"{1}\" is a web address; that of a folder of a WebDAV server is {2}.":
            "„{1}“ ist eine Webadresse; die eines Ordners auf einem WebDAV-Server ist {2}.",
        "\"{1}\" is empty.": "„{1}“ ist leer.",
        "\"{1}\" is not an address; write folder:///PATH, webdavs://HOST/PATH or etcds://HOST/PREFIX.":
            "„{1}“ ist keine Adresse; geben Sie folder:///PFAD, webdavs://HOST/PFAD oder etcds://HOST/PRÄFIX an.",
        "\"{1}\" is refused: {2}.": "„{1}“ wird abgelehnt: {2}.",
        "\"{1}\": keys roam in the app's store, and the manifest declares none.":
            "„{1}“: Schlüssel wandern im Speicher des Programms, und das Manifest deklariert keinen.",
        "\"{1}\": no key goes with {2}.": "„{1}“: Zu {2} passt kein Schlüssel.",
        "\"{1}\": there is no key {2}.": "„{1}“: Es gibt keinen Schlüssel {2}.",
        "\"{1}\": {2} declares the same identifier for an app of another team.":
            "„{1}“: {2} deklariert denselben Bezeichner für ein Programm eines anderen Teams.",
        "\"{1}\": {2} is not a domain: {3}.": "„{1}“: {2} ist keine Domain: {3}.",
        "\"{1}\": {2} is said to roam, and to stay on the device.":
            "„{1}“: {2} soll wandern und zugleich auf dem Gerät bleiben.",
        "--as takes OLD=NEW, not {1}.": "--as erwartet ALT=NEU, nicht {1}.",
        "--bring-values has brought nothing, because this device is signed in to the account already":
            "--bring-values hat nichts mitgenommen, weil dieses Gerät bei dem Konto bereits angemeldet ist",
        """
        --bring-values has brought nothing, because this device showed no values. Those of an account that it has \
        left come back when it signs in there; from there it can switch to another address with --bring-values
        """:
            """
        --bring-values hat nichts mitgenommen, weil dieses Gerät keine Werte zeigte. Die eines früheren Kontos sind \
        wieder da, sobald Sie sich dort anmelden; von dort können Sie mit --bring-values zu einer anderen Adresse \
        wechseln
        """,
        "--discard-changes goes with --clear-values.": "--discard-changes gehört zu --clear-values.",
        "--everybody is for all users, and --user for one; leave one of them out.":
            "--everybody gilt für alle Benutzer, --user für einen; lassen Sie eines davon weg.",
        "--keys takes a number, 0 or more.": "--keys erwartet eine Zahl ab 0.",
        "--password-file goes with --login, which names the user on the server.":
            "--password-file gehört zu --login, das den Benutzer auf dem Server nennt.",
        "--phrase-file is for an existing account, and --encrypt for a new one.":
            "--phrase-file gilt für ein bestehendes Konto, --encrypt für ein neues.",
        "--phrase-file is for an existing account; --encrypt and --no-encrypt are for a new one.":
            "--phrase-file gilt für ein bestehendes Konto, --encrypt und --no-encrypt für ein neues.",
        "--phrase-file is for trying a remote: name its URL.":
            "--phrase-file dient zum Prüfen eines Speicherorts: Geben Sie dessen Adresse an.",
        "--raw is for strings and data, and {1} is of type {2}.":
            "--raw gibt nur Zeichenketten und Daten aus; {1} hat den Typ {2}.",
        "--string goes before the value.": "--string steht vor dem Wert.",
        "--timeout goes with --wait.": "--timeout gehört zu --wait.",
        "--timeout takes 1 to 86400 seconds.": "--timeout erwartet 1 bis 86400 Sekunden.",
        "--user takes a name or a uid.": "--user erwartet einen Namen oder eine UID.",
        ". Please provide one of {1}.": ". Möglich: {1}.",
        "A backup contains passwords, so it can't be written to standard output. Name a file.":
            """
        Eine Sicherung enthält Passwörter und lässt sich daher nicht auf die Standardausgabe schreiben. Nennen Sie \
        eine Datei.
        """,
        "A binary property list can't be shown in a terminal.":
            "Eine binäre Property-Liste lässt sich nicht im Terminal anzeigen.",
        "A damaged database was set aside, and values may be missing; \"ubiquitousctl doctor\" says what to do":
            """
        Eine beschädigte Datenbank wurde beiseitegelegt; möglicherweise fehlen Werte. „ubiquitousctl doctor“ zeigt, \
        was zu tun ist
        """,
        "A device can't forget itself. Sign out instead.":
            "Ein Gerät kann sich nicht selbst vergessen. Melden Sie es stattdessen ab.",
        "A key has {1} UTF-16 code units at most.": "Ein Schlüssel hat höchstens {1} UTF-16-Codeeinheiten.",
        "A name has 1 to 255 bytes, only characters that can be shown, and not spaces alone.":
            "Ein Name hat 1 bis 255 Bytes, nur darstellbare Zeichen, und besteht nicht nur aus Leerzeichen.",
        """
        A password in the address can be seen by everybody, and now it has been: change it, and use --login and \
        --password-file.
        """:
            """
        Ein Passwort in der Adresse kann jeder Benutzer sehen. Ändern Sie dieses Passwort, und verwenden Sie künftig \
        --login und --password-file.
        """,
        "A store's name has 1 to 255 of the characters A-Z a-z 0-9 . _ -, and isn't . or ..":
            "Der Name eines Speichers besteht aus 1 bis 255 der Zeichen A-Z a-z 0-9 . _ - und ist nicht . oder ..",
        "A value is missing after {1}.": "Nach {1} fehlt ein Wert.",
        "A value is missing.": "Ein Wert fehlt.",
        "A value is missing; if {1} is the key, write \"set {2} {3}\".":
            "Ein Wert fehlt; wenn {1} der Schlüssel ist, schreiben Sie „set {2} {3}“.",
        "Acting for user {1}: {2}.": "Für den Benutzer {1}: {2}.",
        "Add --encrypt.": "Ergänzen Sie --encrypt.",
        "Add the user to /etc/passwd, or run this as another user.":
            "Tragen Sie den Benutzer in /etc/passwd ein, oder starten Sie das Programm als anderer Benutzer.",
        "Adopting data": "Daten werden übernommen",
        "An account in a folder has no password.": "Ein Konto in einem Ordner hat kein Passwort.",
        "Another program keeps changing the store.": "Ein anderes Programm ändert den Speicher ununterbrochen.",
        "Answer y or n.": "Antworten Sie mit j oder n.",
        "Argument {1} isn't UTF-8.": "Argument {1} ist kein UTF-8.",
        """
        Check that ubiquitous-store is installed and running (systemctl status ubiquitous-store), or name another \
        bus with --bus.
        """:
            """
        Prüfen Sie, ob ubiquitous-store installiert ist und läuft (systemctl status ubiquitous-store), oder geben \
        Sie mit --bus einen anderen Bus an.
        """,
        "Containers are nested more than {1} deep.": "Container sind mehr als {1}-fach verschachtelt.",
        "Copying the data": "Daten werden kopiert",
        "Declare a store identifier, or leave out the keys.":
            "Deklarieren Sie einen Speicher, oder lassen Sie die Schlüssel weg.",
        "Did you mean \"{1}\"?": "Meinten Sie „{1}“?",
        "Did you mean {1}?": "Meinten Sie {1}?",
        "Downloading the account's values": "Die Werte des Kontos werden geladen",
        "Encrypting": "Konto wird verschlüsselt",
        "Enter the phrase that \"ubiquitousctl account phrase\" shows on another device.":
            """
        Geben Sie die Wiederherstellungswörter ein, die „ubiquitousctl account phrase“ auf einem anderen Gerät \
        zeigt.
        """,
        "Error: Missing expected argument '{1}'": "Fehler: Das Argument „{1}“ fehlt",
        "Error: Missing value for '{1}'": "Fehler: Der Wert für „{1}“ fehlt",
        "Error: The option '{1}' does not take any value, but '{2}' was specified.":
            "Fehler: Die Option „{1}“ erwartet keinen Wert, angegeben ist aber „{2}“.",
        "Error: The value '{1}' is invalid for '{2}'": "Fehler: Der Wert „{1}“ ist ungültig für „{2}“",
        "Error: Unexpected argument '{1}'": "Fehler: Unerwartetes Argument „{1}“",
        "Error: Unknown option '{1}'": "Fehler: Unbekannte Option „{1}“",
        "Error: Unknown option '{1}'. Did you mean '{2}'?": "Fehler: Unbekannte Option „{1}“. Meinten Sie „{2}“?",
        "Error: {1}": "Fehler: {1}",
        "Error: {1} unexpected arguments: {2}": "Fehler: {1} unerwartete Argumente: {2}",
        "Everything is on disk, and stays on this device for now; see \"ubiquitousctl status\"":
            "Alles ist gespeichert, bleibt aber vorerst auf diesem Gerät; siehe „ubiquitousctl status“",
        "Forgetting": "Gerät wird aus der Liste entfernt",
        "Give a value, or one of -string, -int, -float, -bool, -date, -data, -array and -dict with its value.":
            """
        Geben Sie einen Wert an, oder einen der Typen -string, -int, -float, -bool, -date, -data, -array und -dict \
        mit seinem Wert.
        """,
        """
        Give the right credentials, with --login NAME; where this device is signed in, "ubiquitousctl account renew" \
        stores them.
        """:
            """
        Geben Sie die richtigen Zugangsdaten an, mit --login NAME; ist dieses Gerät schon angemeldet, übernimmt sie \
        „ubiquitousctl account renew“.
        """,
        "Help:  {1}": "Hilfe:  {1}",
        """
        If another program copies the folder to this device, wait until it has arrived. Otherwise, leave out \
        --no-create to create one there.
        """:
            """
        Wenn ein anderes Programm den Ordner auf dieses Gerät kopiert, warten Sie, bis er da ist. Sonst wird ohne \
        --no-create dort eines angelegt.
        """,
        "If it is the right data, \"ubiquitousctl admin adopt {1} {2}\" gives it to that user.":
            "Sind es die richtigen Daten, gibt „ubiquitousctl admin adopt {1} {2}“ sie diesem Benutzer.",
        "If none of your devices has made them, add --reject-others to \"account unlock\" or \"account sign-in\".":
            """
        Wenn keines Ihrer Geräte sie erzeugt hat, ergänzen Sie „account unlock“ oder „account sign-in“ um \
        --reject-others.
        """,
        """
        If one of your devices has replaced it, "ubiquitousctl account phrase" shows the phrase there; enter it here \
        with "ubiquitousctl account unlock". Otherwise, "ubiquitousctl account resolve local" keeps this device's \
        key.
        """:
            """
        Wenn eines Ihrer Geräte ihn ersetzt hat, zeigt dort „ubiquitousctl account phrase“ die \
        Wiederherstellungswörter; geben Sie sie hier mit „ubiquitousctl account unlock“ ein. Sonst bleibt es mit \
        „ubiquitousctl account resolve local“ beim Schlüssel dieses Geräts.
        """,
        "Install it so that root owns it, and only root may write to it (install -m 644): now {1}":
            """
        Installieren Sie die Datei so, dass sie root gehört und nur root in sie schreiben darf (install -m 644): \
        derzeit {1}
        """,
        "Install it, or name a file that ends in .tar.":
            "Installieren Sie es, oder nennen Sie eine Datei, die auf .tar endet.",
        "Installed, it masks one of the same name.":
            "Wenn Sie die Datei installieren, verdeckt sie ein Manifest desselben Namens.",
        "It may be busy; try again, and check its log (journalctl -u ubiquitous-store).":
            """
        Vielleicht ist er überlastet; versuchen Sie es noch einmal, und sehen Sie in seinem Protokoll nach \
        (journalctl -u ubiquitous-store).
        """,
        "It was interrupted.": "Der Vorgang wurde unterbrochen.",
        "Let the service use the directory itself (--state-directory=), or mount that here.":
            "Der Dienst soll das Verzeichnis selbst benutzen (--state-directory=), oder es wird hier eingehängt.",
        "Make room on the disk of the service's state directory; \"ubiquitousctl doctor\" says how much is left.":
            """
        Schaffen Sie Platz auf dem Datenträger mit dem Zustandsverzeichnis des Dienstes; „ubiquitousctl doctor“ \
        zeigt, wie viel frei ist.
        """,
        "Name a file.": "Geben Sie eine Datei an.",
        "Name an archive that \"ubiquitousctl admin backup\" has made.":
            "Geben Sie ein Archiv an, das „ubiquitousctl admin backup“ erstellt hat.",
        "Name another file: a backup never overwrites one.":
            "Nennen Sie eine andere Datei: Eine Sicherung überschreibt keine.",
        "Name one by its identifier: {1}.": "Geben Sie eine der Kennungen an: {1}.",
        "Name one of them with --only, or give the other to somebody else with --as.":
            "Nennen Sie eines davon mit --only, oder geben Sie das andere mit --as jemand anderem.",
        "Name one of them.": "Nennen Sie eines davon.",
        """
        Name one with --store or in UBIQUITOUS_STORE_IDENTIFIER; "ubiquitousctl stores" lists those that hold \
        something.
        """:
            """
        Geben Sie einen mit --store oder in UBIQUITOUS_STORE_IDENTIFIER an; „ubiquitousctl stores“ listet alle auf, \
        die etwas enthalten.
        """,
        "Name the store with --store.": "Geben Sie den Speicher mit --store an.",
        "New password for {1}: ": "Neues Passwort für {1}: ",
        "No address is given, and this machine's settings name no default account.":
            "Es ist keine Adresse angegeben, und auf diesem Rechner ist kein Konto voreingestellt.",
        "No store holds anything": "Alle Speicher sind leer",
        "No store is named.": "Es ist kein Speicher angegeben.",
        "No store named {1} holds anything here": "Kein Speicher namens {1} enthält hier etwas",
        "No value is null.": "Kein Wert ist null.",
        "Nobody has confirmed the account's recovery phrase.":
            "Niemand hat die Wiederherstellungswörter des Kontos bestätigt.",
        "Nobody has data on this machine": "Auf diesem Rechner hat niemand Daten",
        "Not everything in the remote could be read; see \"ubiquitousctl status\"":
            "Nicht alles am Speicherort war lesbar; siehe „ubiquitousctl status“",
        """
        Nothing is revoked, and a device that is still in use is listed again with its next change, or after a day. To \
        keep a lost device out, change the password on the server
        """:
            """
        Damit wird kein Zugang gesperrt, und ein Gerät, das noch benutzt wird, erscheint mit seiner nächsten Änderung \
        oder nach einem Tag wieder in der Liste. Um ein verlorenes Gerät auszuschließen, ändern Sie das Passwort auf dem \
        Server
        """,
        """
        Nothing is revoked, and a device that is still in use is listed again with its next change, or after a day. To \
        keep a lost device out, change the password on the server, and then the account's key with "ubiquitousctl \
        account replace-key"
        """:
            """
        Damit wird kein Zugang gesperrt, und ein Gerät, das noch benutzt wird, erscheint mit seiner nächsten Änderung \
        oder nach einem Tag wieder in der Liste. Um ein verlorenes Gerät auszuschließen, ändern Sie das Passwort auf dem \
        Server und dann mit „ubiquitousctl account replace-key“ den Schlüssel des Kontos
        """,
        "Nothing was changed.": "Es wurde nichts geändert.",
        "Nothing was entered.": "Es wurde nichts eingegeben.",
        "Of the earlier values of {1} there is no number {2}; the last is {3}.":
            "{1} hat keinen früheren Wert mit der Nummer {2}; der letzte hat die Nummer {3}.",
        "Only one of --json, --raw and --type can be given.":
            "Nur eine der Optionen --json, --raw und --type ist möglich.",
        "Only one of --password-file and --token-file can be standard input.":
            "Nur eine der Optionen --password-file und --token-file kann die Standardeingabe sein.",
        "Only root may act for user \"{1}\".": "Nur root darf für den Benutzer „{1}“ handeln.",
        """
        Only this program reads the dates of {1} exactly from XML: they aren't in whole seconds. --format binary is \
        exact for all.
        """:
            """
        Die Zeitangaben von {1} enthalten Bruchteile von Sekunden. Aus XML liest nur dieses Programm sie genau, mit \
        --format binary tun es alle.
        """,
        """
        Open programs show the restored values once the service has been restarted ("systemctl restart ubiquitous-store")
        """:
            """
        Offene Programme zeigen die wiederhergestellten Werte, sobald der Dienst neu gestartet wurde („systemctl \
        restart ubiquitous-store“)
        """,
        "Options follow the subcommand.": "Optionen stehen hinter dem Unterbefehl.",
        "Other devices remove it once this one syncs again":
            "Andere Geräte entfernen ihn, sobald dieses wieder abgleicht",
        "Password of {1} for {2}: ": "Passwort von {1} für {2}: ",
        "Pausing": "Abgleich wird angehalten",
        "Press Enter once they are written down: ": "Drücken Sie die Eingabetaste, wenn sie aufgeschrieben sind: ",
        "Put -string before it if it is meant as text.": "Setzen Sie -string davor, wenn Text gemeint ist.",
        "Reading the stores": "Speicher werden gelesen",
        "Reading what is typed; end it with Ctrl-D": "Die Eingabe wird gelesen; Strg-D beendet sie",
        "Remove the earlier values of all stores and settings? [y/N]":
            "Die früheren Werte aller Speicher und Einstellungen entfernen? [j/N]",
        "Remove them anyway? [y/N]": "Trotzdem entfernen? [j/N]",
        "Remove {1} there, or {2} from the local keys.": "Entfernen Sie {1} dort, oder {2} bei den lokalen Schlüsseln.",
        "Removing": "Speicher wird entfernt",
        "Removing data": "Daten werden entfernt",
        "Removing earlier values": "Frühere Werte werden entfernt",
        "Renaming": "Gerät wird umbenannt",
        "Replacing the key": "Schlüssel wird ersetzt",
        "Resolving": "Konflikt wird aufgelöst",
        "Resuming": "Abgleich wird fortgesetzt",
        "Root signs a user in with \"ubiquitousctl account sign-in --user NAME URL\".":
            "Root meldet einen Benutzer mit „ubiquitousctl account sign-in --user NAME URL“ an.",
        "Run it outside of the sandbox.": "Führen Sie es außerhalb der Sandbox aus.",
        "Run with sudo, and not in a container that forbids it.":
            "Verwenden Sie sudo, und nicht in einem Container, der das verbietet.",
        "Say which side is right: \"ubiquitousctl account resolve local\", or \"remote\".":
            "Entscheiden Sie, welche Seite gilt: „ubiquitousctl account resolve local“ oder „remote“.",
        "See \"systemctl status ubiquitous-store\" and \"journalctl -u ubiquitous-store\".":
            "Siehe „systemctl status ubiquitous-store“ und „journalctl -u ubiquitous-store“.",
        "Sign in again at the same address; --discard-changes removes them.":
            "Melden Sie sich an derselben Adresse noch einmal an; --discard-changes entfernt sie.",
        "Sign in with \"ubiquitousctl account sign-in URL\".":
            "Melden Sie sich mit „ubiquitousctl account sign-in URL“ an.",
        "Sign out anyway? [y/N]": "Trotzdem abmelden? [j/N]",
        "Signing in": "Anmeldung läuft",
        "Signing out": "Abmeldung läuft",
        "Standard input": "Die Standardeingabe",
        "Standard input is not UTF-8.": "Die Standardeingabe ist kein UTF-8.",
        "Standard output can't be written to: {1}": "Auf die Standardausgabe lässt sich nicht schreiben: {1}",
        "Switch anyway? [y/N]": "Trotzdem wechseln? [j/N]",
        "Switching to the service's user failed: {1}.":
            "Der Wechsel zum Benutzer des Dienstes ist fehlgeschlagen: {1}.",
        "Sync is paused on this device.": "Der Abgleich ist auf diesem Gerät angehalten.",
        """
        Sync is paused, and not all of the account's values are here; once they arrive, they replace what is set here
        """:
            """
        Der Abgleich ist angehalten, und nicht alle Werte des Kontos sind hier; sobald sie ankommen, ersetzen sie, was \
        hier gesetzt wird
        """,
        "Sync was paused; signing in has ended the pause":
            "Der Abgleich war angehalten; mit der Anmeldung geht er weiter",
        "Synchronizing": "Abgleich läuft",
        "Syncing": "Abgleich läuft",
        "Take the remote's values? [y/N]": "Die Werte des Speicherorts übernehmen? [j/N]",
        "Tar could not write {1}.": "tar konnte {1} nicht schreiben.",
        "That device can't read later uploads. To keep it from the server too, change the password there":
            "Dieses Gerät kann spätere Uploads nicht lesen. Um es auch vom Server fernzuhalten, ändern Sie dort das Passwort",
        "The account can't be synced now: {1}": "Das Konto lässt sich gerade nicht abgleichen: {1}",
        """
        The account has a new recovery phrase, without which nobody can sign another device in: "ubiquitousctl \
        account phrase" prints it.
        """:
            """
        Das Konto hat neue Wiederherstellungswörter, ohne die sich kein anderes Gerät anmelden lässt: „ubiquitousctl \
        account phrase“ gibt sie aus.
        """,
        "The account has other words by now; show them once more.":
            "Das Konto hat inzwischen andere Wörter; lassen Sie sie noch einmal anzeigen.",
        "The account is encrypted. Its recovery phrase (12 words) for {1}: ":
            "Das Konto ist verschlüsselt. Seine Wiederherstellungswörter (zwölf) für {1}: ",
        "The account is encrypted. These are the words of its recovery phrase:":
            "Das Konto ist verschlüsselt. Dies sind seine Wiederherstellungswörter:",
        "The account is not encrypted, so it has no key to replace; encrypt it instead.":
            """
        Das Konto ist nicht verschlüsselt und hat keinen Schlüssel zum Ersetzen; verschlüsseln Sie es stattdessen.
        """,
        "The account is not encrypted, so it has no key.":
            "Das Konto ist nicht verschlüsselt, also hat es keinen Schlüssel.",
        "The account is not encrypted, so it has no recovery phrase.":
            "Das Konto ist nicht verschlüsselt und hat keine Wiederherstellungswörter.",
        "The account that this device is signed in to is not encrypted.":
            "Das Konto, bei dem dieses Gerät angemeldet ist, ist nicht verschlüsselt.",
        """
        The account there is encrypted, and this device does not have its key. Enter its recovery phrase with \
        "ubiquitousctl account unlock"
        """:
            """
        Das Konto dort ist verschlüsselt, und dieses Gerät hat seinen Schlüssel nicht. Geben Sie seine \
        Wiederherstellungswörter mit „ubiquitousctl account unlock“ ein
        """,
        "The account's values are still arriving; until all are there, they replace what is set here":
            "Die Werte des Kontos kommen noch an; bis alle da sind, ersetzen sie, was hier gesetzt wird",
        "The bus has ended.": "Der Bus wurde beendet.",
        "The bus is system, session or an address, such as unix:path=/run/bus, and not {1}.":
            "Als Bus ist system, session oder eine Adresse wie unix:path=/run/bus möglich, nicht {1}.",
        "The bus serves only users that this machine knows, and it knows no user {1}.":
            "Der Bus bedient nur Benutzer, die dieser Rechner kennt; einen Benutzer {1} kennt er nicht.",
        "The change was made, but standard output can't be written to: {1}":
            "Die Änderung wurde vorgenommen, aber auf die Standardausgabe lässt sich nicht schreiben: {1}",
        "The file \"{1}\"": "Die Datei „{1}“",
        "The file \"{1}\" can't be opened: {2}.": "Die Datei „{1}“ lässt sich nicht öffnen: {2}.",
        "The file \"{1}\" can't be written: {2}.": "Die Datei „{1}“ lässt sich nicht schreiben: {2}.",
        "The file {1} has no certificate in PEM.": "Die Datei {1} enthält kein Zertifikat in PEM.",
        "The key is missing.": "Der Schlüssel fehlt.",
        "The key {1} comes twice.": "Der Schlüssel {1} kommt zweimal vor.",
        "The key {1} of -dict has no value.": "Der Schlüssel {1} von -dict hat keinen Wert.",
        "The limit {1} is exceeded by {2}": "Die Grenze {1} wird durch {2} überschritten",
        "The move to the new key has begun, and the service goes on with it after each sync.":
            "Der Wechsel zum neuen Schlüssel hat begonnen; der Dienst setzt ihn nach jedem Abgleich fort.",
        "The remote does not have a change in a store that is excluded from sync.":
            "Dem Speicherort fehlt eine Änderung in einem Speicher, der vom Abgleich ausgenommen ist.",
        "The remote does not have a change of this device; removing it loses it.":
            "Am Speicherort fehlt noch eine Änderung dieses Geräts; wer sie entfernt, verliert sie.",
        "The remote does not have {1} changes in stores that are excluded from sync.":
            "Dem Speicherort fehlen Änderungen in Speichern, die vom Abgleich ausgenommen sind ({1}).",
        "The remote does not have {1} of this device's changes; removing them loses them.":
            "Am Speicherort fehlen noch Änderungen dieses Geräts ({1}); wer sie entfernt, verliert sie.",
        """
        The remote has another key by now. These words open the account only if this device's is put back \
        ("ubiquitousctl account resolve local").
        """:
            """
        Am Speicherort des Kontos gilt inzwischen ein anderer Schlüssel. Diese Wörter öffnen das Konto nur, wenn Sie \
        den Schlüssel dieses Geräts wieder in Kraft setzen („ubiquitousctl account resolve local“).
        """,
        "The remote may lack values of this device; removing them may lose them.":
            "Am Speicherort fehlen vielleicht Werte dieses Geräts; wer sie entfernt, verliert sie dann.",
        "The server accepts the credentials": "Der Server nimmt die Anmeldedaten an",
        "The service can't start: {1}.": "Der Dienst startet nicht: {1}.",
        "The service can't tell what sandbox this program is in, and shows it no data.":
            "Der Dienst kann nicht feststellen, in welcher Sandbox dieses Programm läuft, und zeigt ihm keine Daten.",
        "The service doesn't answer.": "Der Dienst antwortet nicht.",
        "The service has ended; waiting for it": "Der Dienst wurde beendet; es wird gewartet, bis er wieder läuft",
        "The service is of an older version than this program.": "Der Dienst ist älter als dieses Programm.",
        "The store can't be written as XML: {1}.": "Der Speicher lässt sich nicht als XML schreiben: {1}.",
        "The store has no value for {1}.": "Der Speicher hat keinen Wert für {1}.",
        "The store would have {1} bytes, and may have {2}.":
            "Der Speicher hätte {1} Bytes; erlaubt sind höchstens {2}.",
        "The store would have {1} keys, and may have {2}.":
            "Der Speicher hätte {1} Schlüssel; erlaubt sind höchstens {2}.",
        "The terminal can't be kept from showing the password.": "Das Terminal würde das Passwort anzeigen.",
        "The user has no data on this device, or this program may not use it.":
            "Der Benutzer hat keine Daten auf diesem Gerät, oder dieses Programm darf sie nicht verwenden.",
        "The value for {1} can't be stored. {2}": "Der Wert für {1} lässt sich nicht speichern. {2}",
        "The value is not JSON: {1}.": "Der Wert ist kein gültiges JSON: {1}.",
        "The values of \"history\" are numbered from 1.": "„history“ nummeriert die Werte ab 1.",
        """
        The values on this device are those of the account from before. If another account is there, they are \
        hidden; --bring-values takes them along into a new one
        """:
            """
        Die Werte auf diesem Gerät sind die des bisherigen Kontos. Ist dort ein anderes Konto, werden sie \
        ausgeblendet; --bring-values nimmt sie in ein neues mit
        """,
        """
        The words are no arguments: other users see those, and the shell keeps them. Leave them out; you are asked \
        for them. If these are the account's, give it others with "ubiquitousctl account replace-key".
        """:
            """
        Die Wörter gehören nicht auf die Befehlszeile: Andere Benutzer sehen sie dort, und die Shell merkt sie sich. \
        Lassen Sie sie weg; danach wird gefragt. Sind es die des Kontos, geben Sie ihm andere mit „ubiquitousctl \
        account replace-key“.
        """,
        "There are no earlier values of {1}.": "Es gibt keine früheren Werte von {1}.",
        "There are {1} bytes in {2}, which is too much. Name the right file.":
            "In {2} stehen {1} Bytes, das ist zu viel. Nennen Sie die richtige Datei.",
        "There is data of several uids under the name {1}: {2}.":
            "Unter dem Namen {1} gibt es Daten mehrerer UIDs: {2}.",
        """
        There is no --password: other users of the machine see arguments, and the shell keeps them. Change the \
        password if others may have seen it. Leave it out and you are asked for it, or use --password-file.
        """:
            """
        Es gibt kein --password: Andere Benutzer des Rechners sehen Argumente, und die Shell hebt sie auf. Ändern \
        Sie das Passwort, falls andere es gesehen haben könnten. Lassen Sie es weg, dann werden Sie danach gefragt, \
        oder verwenden Sie --password-file.
        """,
        "There is no account yet, and the one that this device would leave is encrypted.":
            "Dort ist noch kein Konto, und das Konto, das dieses Gerät verlassen würde, ist verschlüsselt.",
        "There is no account yet. Encrypt it, so that only your devices can read it? [Y/n]":
            "Es gibt noch kein Konto. Verschlüsseln, damit nur Ihre Geräte es lesen können? [J/n]",
        "There is no data of {1} in {2}.": "In {2} gibt es keine Daten von {1}.",
        "There is no data {1}, and no user of that name who has any.":
            "Es gibt keine Daten {1} und keinen Benutzer dieses Namens, der welche hat.",
        "There is no data {1}.": "Es gibt keine Daten {1}.",
        "There is no device {1}.": "Es gibt kein Gerät {1}.",
        "There is no option {1}; put -- before a key that begins with -.":
            "Es gibt keine Option {1}; setzen Sie -- vor einen Schlüssel, der mit - beginnt.",
        "There is no password in {1}.": "In {1} steht kein Passwort.",
        "There is no recovery phrase in {1}.": "In {1} stehen keine Wiederherstellungswörter.",
        "There is no room in {1} to unpack {2}{3}.": "In {1} ist kein Platz, um {2} zu entpacken{3}.",
        "There is no store {1} for user {2}.": "Es gibt keinen Speicher {1} für den Benutzer {2}.",
        "There is no subcommand {1}.": "Es gibt keinen Unterbefehl {1}.",
        "There is no type and no option {1} for a value.": "Es gibt keinen Typ und keine Option {1} für einen Wert.",
        "There is no user {1} on this machine.": "Es gibt keinen Benutzer {1} auf diesem Rechner.",
        "There is nothing to resolve: the account syncs":
            "Es gibt nichts zu entscheiden: Das Konto wird synchronisiert",
        "There is nothing to restore in {1}.": "{1} enthält nichts, was sich wiederherstellen lässt.",
        "There was no answer.": "Es kam keine Antwort.",
        "This account is not encrypted: anyone with access to the remote can read it. Sign in anyway? [y/N]":
            """
        Dieses Konto ist nicht verschlüsselt: Wer Zugriff auf den Speicherort hat, kann es lesen. Trotzdem anmelden? \
        [j/N]
        """,
        "This device is signed in to {1} already.": "Dieses Gerät ist bereits bei {1} angemeldet.",
        "This device is signed out already; its values are kept.":
            "Dieses Gerät ist bereits abgemeldet; seine Werte bleiben erhalten.",
        "This device isn't listed.": "Dieses Gerät steht nicht in der Liste.",
        "This device isn't signed in.": "Dieses Gerät ist nicht angemeldet.",
        "This device shows the values of the account from before. Copy them into the new one? [Y/n]":
            "Dieses Gerät zeigt die Werte des bisherigen Kontos. In das neue übernehmen? [J/n]",
        "This takes longer than {1} s.": "Das dauert länger als {1} s.",
        "Try again.": "Versuchen Sie es noch einmal.",
        "Trying {1}": "{1} wird geprüft",
        "Unlocking": "Konto wird entsperrt",
        "Usage: {1}": "Aufruf: {1}",
        "Use \"ubiquitousctl account sign-in URL\".": "Verwenden Sie „ubiquitousctl account sign-in URL“.",
        "Use \"ubiquitousctl account sign-in {1}\".": "Verwenden Sie „ubiquitousctl account sign-in {1}“.",
        "Use \"ubiquitousctl account switch\" to go to another account.":
            "Mit „ubiquitousctl account switch“ wechseln Sie zu einem anderen Konto.",
        "Use --bring-values.": "Verwenden Sie --bring-values.",
        "Use --discard-changes.": "Verwenden Sie --discard-changes.",
        "Use --encrypt or --no-encrypt.": "Verwenden Sie --encrypt oder --no-encrypt.",
        "Use --forget-key to leave it anyway.": "Verwenden Sie --forget-key, um es trotzdem zu verlassen.",
        "Use --forget-key to sign out anyway.": "Verwenden Sie --forget-key, um sich trotzdem abzumelden.",
        "Use --forget-key.": "Verwenden Sie --forget-key.",
        "Use --login.": "Verwenden Sie --login.",
        "Use --password-file.": "Verwenden Sie --password-file.",
        "Use sudo.": "Verwenden Sie sudo.",
        """
        Values from before belong to another account. They are kept, and come back when this device signs in to \
        that account; if it is gone, "ubiquitousctl restore KEY" brings one of them back. --bring-values takes all \
        of them along into a new account
        """:
            """
        Bisherige Werte gehören zu einem anderen Konto. Sie bleiben erhalten und sind wieder da, sobald Sie \
        sich bei diesem Konto anmelden; gibt es das nicht mehr, holt „ubiquitousctl restore SCHLÜSSEL“ einzelne \
        zurück. --bring-values nimmt alle in ein neues Konto mit
        """,
        "Waiting for the service": "Warten auf den Dienst",
        "What is in {1} is not UTF-8 text.": "Was in {1} steht, ist kein Text in UTF-8.",
        "What was unpacked in {1} can't be written to the disk.":
            "Was in {1} entpackt wurde, lässt sich nicht auf den Datenträger schreiben.",
        "What was uploaded can't be read back just now: {1}":
            "Was hochgeladen wurde, lässt sich gerade nicht zurücklesen: {1}",
        "What was written is kept, and will be uploaded; see \"ubiquitousctl status\".":
            "Die Änderungen sind gespeichert und werden noch hochgeladen; siehe „ubiquitousctl status“.",
        "With \"remote\", values that only this device has leave their stores, and stay in the history of their keys":
            """
        Mit „remote“ verschwinden Werte, die nur dieses Gerät hat, aus ihren Speichern; im Verlauf ihrer Schlüssel \
        bleiben sie erhalten
        """,
        "With --force it is removed anyway.": "Mit --force werden sie trotzdem entfernt.",
        "With --replace they are set aside.": "Mit --replace werden sie beiseitegelegt.",
        "With both installed, the service gives the store to neither. Choose another identifier.":
            """
        Sind beide installiert, gibt der Dienst den Speicher keinem von beiden. Wählen Sie einen anderen Bezeichner.
        """,
        "Write a key, or the beginning of keys and an asterisk.":
            "Geben Sie einen Schlüssel an, oder den Anfang von Schlüsseln und ein Sternchen.",
        "Write folder:///PATH, webdavs://HOST/PATH or etcds://HOST/PREFIX.":
            "Geben Sie folder:///PFAD, webdavs://HOST/PFAD oder etcds://HOST/PRÄFIX an.",
        """
        Write them down and keep them apart from this device: another device asks for them. Without them and without \
        a device that is signed in, nobody can read the values in the remote any more. "ubiquitousctl account \
        phrase" shows them again.
        """:
            """
        Schreiben Sie sie auf, und bewahren Sie sie getrennt von diesem Gerät auf: Ein anderes Gerät fragt danach. \
        Ohne sie und ohne ein angemeldetes Gerät kann niemand mehr die Werte am Speicherort lesen. „ubiquitousctl \
        account phrase“ zeigt sie wieder.
        """,
        "Writing to disk": "Daten werden auf den Datenträger geschrieben",
        "Your user name on the server ({1}): ": "Ihr Benutzername auf dem Server ({1}): ",
        "a directory that its unit names is missing, or can't be mounted":
            "ein Verzeichnis, das in seiner Unit steht, fehlt oder lässt sich nicht einhängen",
        "it ended with {1}": "er endete mit {1}",
        "it isn't installed, as systemd knows no unit {1}":
            "er ist nicht installiert, denn systemd kennt keine Unit {1}",
        "it takes a number, nan, inf or -inf": "erwartet wird eine Zahl, nan, inf oder -inf",
        "it takes a time such as 2026-11-21T09:30:00Z, 2026-11-21T10:30:00+01:00 or, here, 2026-11-21T09:30":
            """
        erwartet wird eine Zeit wie 2026-11-21T09:30:00Z, 2026-11-21T10:30:00+01:00 oder, als Ortszeit, \
        2026-11-21T09:30
        """,
        "it takes a whole number of 64 bits": "erwartet wird eine ganze Zahl mit 64 Bit",
        "it takes pairs of hexadecimal digits": "erwartet werden Paare von Hexadezimalziffern",
        "it takes too long": "er braucht zu lange",
        "it takes true, yes, 1, false, no or 0": "erwartet wird true, yes, 1, false, no oder 0",
        "it was started too often in a short time; wait, or run \"systemctl reset-failed ubiquitous-store\"":
            """
        er wurde in kurzer Zeit zu oft gestartet; warten Sie, oder führen Sie „systemctl reset-failed \
        ubiquitous-store“ aus
        """,
        "its directory can't be entered": "sein Verzeichnis ist nicht zugänglich",
        "its program can't be run": "sein Programm lässt sich nicht ausführen",
        "its runtime directory can't be made": "sein Laufzeitverzeichnis lässt sich nicht anlegen",
        "its settings are invalid": "seine Einstellungen sind ungültig",
        "its state directory can't be made, as on a full or read-only disk":
            """
        sein Zustandsverzeichnis lässt sich nicht anlegen, etwa weil der Datenträger voll oder schreibgeschützt ist
        """,
        "its unit has failed ({1})": "seine Unit ist fehlgeschlagen ({1})",
        "its unit is masked; \"systemctl unmask ubiquitous-store\" ends that":
            "seine Unit ist maskiert; „systemctl unmask ubiquitous-store“ beendet das",
        "its user _ubiquitous-store doesn't exist": "seinen Benutzer _ubiquitous-store gibt es nicht",
        "of the store": "des Speichers",
        "only files whose names end in .plist are read": "nur Dateien, deren Namen auf .plist enden, werden gelesen",
        "standard input": "der Standardeingabe",
        "the file \"{1}\"": "der Datei „{1}“",
        "the former data of {1} was set aside as {2}": "die bisherigen Daten von {1} wurden als {2} beiseitegelegt",
        "the month {1} has {2} days": "der Monat {1} hat {2} Tage",
        "there is no month {1}": "es gibt keinen Monat {1}",
        "there is no time {1}": "es gibt keine Uhrzeit {1}",
        "there wasn't enough memory": "der Arbeitsspeicher reichte nicht aus",
        "{1} can't be examined: {2}.": "{1} lässt sich nicht prüfen: {2}.",
        "{1} can't be made private: {2}.": "{1} lässt sich nicht vor anderen schützen: {2}.",
        "{1} can't be made: {2}.": "{1} lässt sich nicht anlegen: {2}.",
        "{1} can't be put in place: {2}.": "{1} lässt sich nicht an seinen Platz bringen: {2}.",
        "{1} can't be read: {2}.": "{1} lässt sich nicht lesen: {2}.",
        "{1} can't be unpacked{2}.": "{1} lässt sich nicht entpacken{2}.",
        "{1} can't name a store.": "{1} kann kein Name eines Speichers sein.",
        "{1} devices are called \"{2}\".": "{1} Geräte heißen „{2}“.",
        "{1} doesn't get the data of {2}; {3} is set aside.":
            "{1} bekommt die Daten von {2} nicht; {3} wurde beiseitegelegt.",
        "{1} doesn't go with -date: clocks here skip that time.":
            "{1} passt nicht zu -date: Die Uhren überspringen hier diese Zeit.",
        "{1} doesn't go with -date: {2}.": "{1} passt nicht zu -date: {2}.",
        "{1} doesn't go with {2}: {3}.": "{1} passt nicht zu {2}: {3}.",
        "{1} follows the value; put quotes around a value with spaces, and --store before a store.":
            """
        {1} folgt auf den Wert; ein Wert mit Leerzeichen gehört in Anführungszeichen, ein Speicher hinter --store.
        """,
        "{1} goes before the value.": "{1} steht vor dem Wert.",
        "{1} has values or an account already.": "{1} hat schon Werte oder ein Konto.",
        "{1} has values or an account already; {2} is set aside.":
            "{1} hat schon Werte oder ein Konto; {2} wurde beiseitegelegt.",
        "{1} holds a value of type {2}, and not a dictionary.": "{1} enthält einen Wert vom Typ {2}, kein Dictionary.",
        """
        {1} holds values of an app that this program may not open: a sandboxed one, or one without a manifest that is in \
        force
        """:
            """
        {1} enthält Werte eines Programms, das dieses hier nicht öffnen darf: eines aus einer Sandbox, oder eines ohne \
        geltendes Manifest
        """,
        "{1} holds {2}, which is a link or not a file.": "{1} enthält {2}, und das ist ein Verweis oder keine Datei.",
        "{1} is a symbolic link, which could lead root anywhere.":
            "{1} ist ein symbolischer Verweis, der root an einen beliebigen Ort führen könnte.",
        "{1} is empty.": "{1} ist leer.",
        "{1} is far larger than any store.": "{1} ist viel größer als jeder Speicher.",
        "{1} is not a backup in {2}.": "{1} ist kein Backup in {2}.",
        "{1} is not a directory of the service's user.":
            "{1} ist kein Verzeichnis des Benutzers, als der der Dienst läuft.",
        "{1} is set aside: the archive has data of {2} under several uids, and doesn't say which was the user's.":
            """
        {1} wurde beiseitegelegt: Das Archiv enthält Daten von {2} unter mehreren UIDs und sagt nicht, welche die des \
        Benutzers war.
        """,
        "{1} is the data of a user of this machine, and was not set aside.":
            "{1} sind die Daten eines Benutzers dieses Rechners und wurden nicht beiseitegelegt.",
        "{1} is the data of a user of this machine.": "{1} sind die Daten eines Benutzers dieses Rechners.",
        "{1} is the only data of {2} on this machine.": "{1} sind die einzigen Daten von {2} auf diesem Rechner.",
        "{1} of {2} words. The others, or Enter to end here: ":
            "{1} von {2} Wörtern. Die übrigen, oder Eingabetaste zum Beenden: ",
        "{1} stands where the subcommand belongs.": "{1} steht an der Stelle des Unterbefehls.",
        "{1} was removed: the newest {2} that restoring set aside are kept":
            "{1} wurde entfernt: Von dem, was beim Wiederherstellen beiseitegelegt wurde, bleiben die neuesten {2}",
        "{1} would get the data of both {2} and {3}.": "{1} bekäme die Daten von {2} und die von {3}.",
        "{1}, which the archive's name asks for, is not installed.":
            "{1}, das der Name des Archivs verlangt, ist nicht installiert.",
    ])
}
