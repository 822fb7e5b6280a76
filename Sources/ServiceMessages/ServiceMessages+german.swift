// SPDX-License-Identifier: Apache-2.0

extension ServiceMessages {
    /// The service's messages in German. A test compares them with the sources.
    static let german: [String: String] = [
        " It is a file, or a symbolic link that the service doesn't follow.":
            " Dort ist eine Datei oder ein symbolischer Link, dem der Dienst nicht folgt.",
        "The file system at {1} has not answered for a minute. Is its server away, or its drive failing?":
            "Das Dateisystem unter {1} hat seit einer Minute nicht geantwortet. Ist sein Server nicht erreichbar, oder versagt sein Laufwerk?",
        "This device has rejected the account's key on the other devices, and has to replace its own. Until then, no other device reads what this one uploads. \"ubiquitousctl account replace-key\" says what prevents it.":
            "Dieses Gerät hat den Schlüssel abgelehnt, den das Konto auf den anderen Geräten hat, und muss seinen eigenen ersetzen. Bis dahin liest kein anderes Gerät, was dieses hochlädt. „ubiquitousctl account replace-key“ sagt, was dem im Weg steht.",
        "This folder waits for others that have not answered for a minute.":
            "Dieser Ordner wartet auf andere, die seit einer Minute nicht geantwortet haben.",
        "\"\" is a program's own domain; name the program, too.":
            "\"\" ist die eigene Domain eines Programms; geben Sie auch das Programm an.",
        "\"reject-others\" needs a \"recovery-phrase\".": "„reject-others“ erfordert „recovery-phrase“.",
        "\"renew\" is for the address of the account that is signed in.":
            "„renew“ gilt nur für die Adresse des angemeldeten Kontos.",
        "\"ubiquitousctl account renew --ca-file FILE\" gives it to an account that is signed in.":
            "Einem angemeldeten Konto gibt es „ubiquitousctl account renew --ca-file DATEI“.",
        "\"{1}\" has to be {2}": "„{1}“ muss {2} sein",
        "\"{1}\" is not HOST or HOST:PORT; {2}": "„{1}“ hat nicht die Form HOST oder HOST:PORT; {2}",
        "\"{1}\" is not HOST or HOST:PORT; {2}, and commas are between members, without spaces":
            """
        „{1}“ hat nicht die Form HOST oder HOST:PORT; {2}, und Mitglieder werden durch Kommas ohne Leerzeichen \
        getrennt
        """,
        "\"{1}\" on {2}": "„{1}“ ({2})",
        ", if the folder above it exists": ", wenn es den übergeordneten gibt",
        ", rejected": ", abgelehnt",
        ", since {1}": " (seit {1})",
        ", the account's before": ", früher der des Kontos",
        "1 to 255 of the characters A-Z a-z 0-9 . _ -, and neither \".\" nor \"..\"":
            "eine Folge von 1 bis 255 der Zeichen A-Z a-z 0-9 . _ - und weder „.“ noch „..“",
        "64 KiB and 16 certificates at most; give only those of the server's authority":
            "höchstens 64 KiB und 16 Zertifikate; geben Sie nur die der Zertifizierungsstelle des Servers an",
        "A call can open {1} domains at most. Make several calls.":
            "Ein Aufruf kann höchstens {1} Domains öffnen. Verteilen Sie sie auf mehrere Aufrufe.",
        "A clone publishes under this device's origin, which the next poll replaces.":
            """
        Ein Klon dieses Geräts veröffentlicht unter demselben Ursprung; beim nächsten Abruf erhält dieses Gerät \
        einen neuen.
        """,
        "A connection may have {1} subscriptions.": "Eine Verbindung darf höchstens {1} Abonnements haben.",
        "A date is a finite number of seconds since 2001, and this is {1}.":
            "Ein Datum ist eine endliche Zahl von Sekunden seit 2001; angegeben ist {1}.",
        "A date is infinite or not a number; dates are finite seconds since 2001-01-01T00:00:00Z.":
            """
        Ein Datum ist unendlich oder keine Zahl; ein Datum ist eine endliche Zahl von Sekunden seit \
        2001-01-01T00:00:00Z.
        """,
        "A device can't forget itself. Sign out instead.":
            "Ein Gerät kann sich nicht selbst vergessen. Melden Sie es stattdessen ab.",
        "A device's name has 1 to 255 bytes, and only characters that can be shown.":
            "Der Name eines Geräts hat 1 bis 255 Bytes und nur darstellbare Zeichen.",
        "A device's published state of the store {1} doesn't match its digest.":
            "Der von einem Gerät veröffentlichte Stand des Speichers {1} passt nicht zu seiner Prüfsumme.",
        "A dictionary has the key \"{1}\" twice.": "Ein Dictionary enthält den Schlüssel „{1}“ zweimal.",
        "A file that says which account is here is damaged or has not arrived completely.":
            """
        Eine Datei, in der steht, welches Konto hier liegt, ist beschädigt oder noch nicht vollständig \
        angekommen.
        """,
        "A file that was just written to the remote is missing there. The service retries.":
            "Eine soeben geschriebene Datei fehlt am Speicherort. Der Dienst versucht es erneut.",
        "A manifest may have at most {1} bytes.": "Ein Manifest darf höchstens {1} Bytes haben.",
        "A newer call has ended this one.": "Ein neuerer Aufruf hat diesen beendet.",
        "A recovery phrase has 12 words, and these are {1}. Enter all 12, and nothing else.":
            "Es müssen 12 Wiederherstellungswörter sein (eingegeben: {1}). Geben Sie genau diese 12 ein.",
        "A sandboxed app may not do this.": "Ein Programm in einer Sandbox darf das nicht.",
        "A sandboxed app may read this domain and not write to it.":
            "Ein Programm in einer Sandbox darf diese Domain lesen, aber nicht ändern.",
        "A store of this identifier can't be synchronised.":
            "Ein Speicher mit dieser Kennung lässt sich nicht abgleichen.",
        "A store was removed from this device while it read the account. Move the account once more.":
            "Während dieses Gerät das Konto las, wurde ein Speicher von ihm entfernt. Wechseln Sie den Schlüssel erneut.",
        "A string contains a noncharacter, such as U+FFFF, or isn't UTF-8; store such text as bytes.":
            """
        Eine Zeichenkette enthält ein Nichtzeichen wie U+FFFF oder ist kein UTF-8; speichern Sie solchen Text \
        als Bytes.
        """,
        "A string or a dictionary's key contains U+0000; leave that character out or store data instead.":
            """
        Eine Zeichenkette oder der Schlüssel eines Dictionarys enthält U+0000; lassen Sie das Zeichen weg, oder \
        speichern Sie den Text als Daten.
        """,
        "A string or a dictionary's key contains a noncharacter, such as U+FFFF; store such text as data.":
            """
        Eine Zeichenkette oder der Schlüssel eines Dictionarys enthält ein Nichtzeichen wie U+FFFF; speichern \
        Sie solchen Text als Daten.
        """,
        "A test file was read back with other contents than were written.":
            "Eine Testdatei hatte beim Lesen einen anderen Inhalt als beim Schreiben.",
        "A text of the call is longer than {1} bytes.": "Ein Text des Aufrufs ist länger als {1} Bytes.",
        "A user may have {1} stores; see ubiquitousctl stores.":
            "Ein Benutzer darf höchstens {1} Speicher haben; siehe „ubiquitousctl stores“.",
        "A user may have {1} subscriptions to domains. End some with Unsubscribe.":
            "Ein Benutzer darf höchstens {1} Domains abonnieren. Beenden Sie einige Abonnements mit Unsubscribe.",
        "A user may have {1} subscriptions.": "Ein Benutzer darf höchstens {1} Abonnements haben.",
        "A user may register {1} manifests.": "Ein Benutzer darf höchstens {1} Manifeste registrieren.",
        "A user's registered manifests may have at most {1} bytes together.":
            "Die registrierten Manifeste eines Benutzers dürfen zusammen höchstens {1} Bytes haben.",
        "A user's name on a server can't have a colon in it.":
            "Der Benutzername auf einem Server darf keinen Doppelpunkt enthalten.",
        "A value is missing.": "Ein Wert fehlt.",
        "A value may have {1} bytes (limit value-bytes), and this one needs {2}.":
            "Ein Wert darf höchstens {1} Bytes haben (Grenze value-bytes); dieser braucht {2}.",
        "A value may have {1} containers around it, and this has more.":
            "Ein Wert darf in höchstens {1} Containern stecken; dieser steckt in mehr.",
        "A value of the D-Bus type \"{1}\" is not a property list; use b, x, d, s, ay, (d), av or a{sv}.":
            "Ein Wert vom D-Bus-Typ „{1}“ ist keine Property-Liste; verwenden Sie b, x, d, s, ay, (d), av oder a{sv}.",
        "Access denied.": "Zugriff verweigert.",
        "Accounts at {1}: addresses are not allowed on this machine.":
            "Konten an {1}:-Adressen sind auf diesem Rechner nicht erlaubt.",
        """
        All of the user's values have to be written again, and the disk with the service's data has no room for \
        that: {1} MiB are missing. Nothing was changed; free some space, and try again.
        """:
            """
        Alle Werte des Benutzers müssen neu geschrieben werden, und dafür ist auf dem Datenträger mit den Daten des \
        Dienstes kein Platz: Es fehlen {1} MiB. Nichts wurde geändert; schaffen Sie Platz und versuchen Sie es erneut.
        """,
        """
        All of the user's values have to be written again, and this device's disk has no room for that: {1} MiB are \
        missing. Free some space.
        """:
            """
        Alle Werte des Benutzers müssen neu geschrieben werden, und dafür ist auf dem Datenträger dieses Geräts kein \
        Platz: Es fehlen {1} MiB. Schaffen Sie welchen.
        """,
        "An account at this address can't be encrypted.": "Ein Konto an dieser Adresse lässt sich nicht verschlüsseln.",
        "An account at this kind of address can't be encrypted.":
            "Konten an Adressen dieser Art lassen sich nicht verschlüsseln.",
        """
        An account that this device has left does not have {1} of the store's changes yet; removing the store loses \
        them. If the store takes part in sync, they are uploaded when this device signs in there again; \
        "ubiquitousctl stores remove --discard-changes {2}" removes them anyway.
        """:
            """
        Einem Konto, das dieses Gerät verlassen hat, fehlen noch Änderungen des Speichers (Anzahl: {1}); wer ihn \
        entfernt, \
        verliert sie. Wenn der Speicher synchronisiert wird, werden sie hochgeladen, sobald sich dieses Gerät dort \
        wieder anmeldet; „ubiquitousctl stores remove --discard-changes {2}“ entfernt sie trotzdem.
        """,
        "An encrypted account is here{1}. Its recovery phrase opens it.":
            "Hier liegt ein verschlüsseltes Konto{1}. Seine Wiederherstellungswörter öffnen es.",
        "An entry of the store {1} is corrupt.": "Ein Eintrag des Speichers {1} ist fehlerhaft.",
        "An integer can be {1} at most, and this is {2}.":
            "Eine ganze Zahl darf höchstens {1} sein; angegeben ist {2}.",
        "Another call has signed in to another account meanwhile; nothing was signed out.":
            "Ein anderer Aufruf hat inzwischen ein anderes Konto angemeldet; es wurde nichts abgemeldet.",
        "Another device of the account has given it a new key. Enter its recovery phrase.":
            """
        Ein anderes Gerät des Kontos hat ihm einen neuen Schlüssel gegeben. Geben Sie dessen \
        Wiederherstellungswörter ein.
        """,
        "Arrays and dictionaries are nested deeper than {1}; flatten the value or spread it over several keys.":
            """
        Arrays und Dictionarys sind mehr als {1}-fach verschachtelt; vereinfachen Sie den Wert, oder verteilen \
        Sie ihn auf mehrere Schlüssel.
        """,
        """
        Authentication is off: anyone who can reach the cluster can read and change everything in it. "etcdctl auth \
        enable" switches it on, once there is a user root.
        """:
            """
        Die Authentifizierung ist ausgeschaltet: Wer den Cluster erreicht, kann alles darin lesen und ändern. \
        „etcdctl auth enable“ schaltet sie ein, sobald es einen Benutzer root gibt.
        """,
        "Check this device's clock. If it is right, renew the server's certificate.":
            "Prüfen Sie die Uhr dieses Geräts. Geht sie richtig, muss das Zertifikat des Servers erneuert werden.",
        "Did you mean {1}?": "Meinten Sie {1}?",
        "Give either a user and a password, or a token.":
            "Geben Sie entweder Benutzername und Passwort oder ein Token an.",
        "Give the address with a name that is in the certificate, or renew the server's.":
            "Geben Sie die Adresse mit einem Namen an, der im Zertifikat steht, oder erneuern Sie das des Servers.",
        "If it has TLS, the address must begin with etcds://.":
            "Verwendet der Server TLS, muss die Adresse mit etcds:// beginnen.",
        "If it has TLS, the address must begin with webdavs://.":
            "Verwendet der Server TLS, muss die Adresse mit webdavs:// beginnen.",
        "If it has no TLS, the address must begin with etcd://.":
            "Verwendet der Server kein TLS, muss die Adresse mit etcd:// beginnen.",
        "If it has no TLS, the address must begin with webdav://.":
            "Verwendet der Server kein TLS, muss die Adresse mit webdav:// beginnen.",
        """
        If it stays so, "ubiquitousctl account resolve local" on a device of the account writes it again; if no device \
        is in an account there, remove what the folder contains.
        """:
            """
        Bleibt es dabei, schreibt „ubiquitousctl account resolve local“ auf einem Gerät des Kontos sie neu. Ist dort \
        kein Gerät in einem Konto, entfernen Sie den Inhalt des Ordners.
        """,
        "If it was deleted, \"ubiquitousctl account resolve local\" creates it again from this device.":
            "Wurde der Ordner gelöscht, legt „ubiquitousctl account resolve local“ ihn von diesem Gerät aus wieder an.",
        """
        If no device writes it again, it is removed after a month; if no value is missing here, you can remove it now \
        and lose nothing.
        """:
            """
        Wenn kein Gerät sie neu schreibt, wird sie nach einem Monat entfernt; fehlt hier kein Wert, können Sie sie \
        auch gleich entfernen, ohne etwas zu verlieren.
        """,
        """
        If nobody has it, "ubiquitousctl account replace-key" gives the account another key, without what was uploaded \
        under this one.
        """:
            """
        Hat sie niemand, gibt „ubiquitousctl account replace-key“ dem Konto einen anderen Schlüssel, ohne das, was \
        unter diesem hochgeladen wurde.
        """,
        "If the device that has them is lost, \"ubiquitousctl account forget\" ends the wait.":
            "Ist das Gerät verloren, das sie hat, beendet „ubiquitousctl account forget“ das Warten.",
        "If the server has an authority of its own, sign in with its certificate.":
            "Hat der Server eine eigene Zertifizierungsstelle, melden Sie sich mit deren Zertifikat an.",
        "If they never will, \"ubiquitousctl account resolve local\" continues without them.":
            "Falls sie nie ankommen, geht es mit „ubiquitousctl account resolve local“ ohne sie weiter.",
        """
        If this device's clock is wrong, its values can win over later ones of other devices, or lose to earlier \
        ones.
        """:
            """
        Geht die Uhr dieses Geräts falsch, können seine Werte spätere anderer Geräte verdrängen oder früheren \
        unterliegen.
        """,
        "Install one, or open the identifier that the app's manifest declares.":
            "Installieren Sie eines, oder öffnen Sie die Kennung, die das Manifest des Programms deklariert.",
        "It opens the account and what \"{1}\" uploaded last, on {2}.":
            "Der Schlüssel öffnet das Konto und das, was „{1}“ zuletzt hochgeladen hat ({2}).",
        "It opens the account, and nothing was uploaded under it yet.":
            "Der Schlüssel öffnet das Konto; hochgeladen wurde damit noch nichts.",
        "It opens the account, but no upload in it: they are all damaged, or under another key.":
            """
        Der Schlüssel öffnet das Konto, aber nichts Hochgeladenes darin: Alles ist beschädigt oder hat einen \
        anderen Schlüssel.
        """,
        "Make the server list folders again, as it did when the account was made.":
            "Der Server muss wieder Ordner auflisten, wie zu der Zeit, als das Konto entstand.",
        "Neither DBUS_SESSION_BUS_ADDRESS nor XDG_RUNTIME_DIR is set.":
            "Weder DBUS_SESSION_BUS_ADDRESS noch XDG_RUNTIME_DIR ist gesetzt.",
        "No account is signed in.": "Es ist kein Konto angemeldet.",
        "No installed manifest declares the identifier \"{1}\" for this caller. {2}":
            "Kein installiertes Manifest deklariert die Kennung „{1}“ für dieses Programm. {2}",
        "No other member could answer either; more than half of them may be down.":
            "Auch kein anderes Mitglied konnte antworten; vielleicht ist mehr als die Hälfte ausgefallen.",
        "No such object.": "Dieses Objekt gibt es nicht.",
        """
        Nobody has confirmed the account's recovery phrase. Without the phrase, and without a device that is signed \
        in, nobody can read the account any more. Show the phrase first ("ubiquitousctl account phrase").
        """:
            """
        Niemand hat die Wiederherstellungswörter des Kontos bestätigt. Ohne sie und ohne ein angemeldetes Gerät \
        kann niemand mehr das Konto lesen. Lassen Sie sich zuerst die Wörter anzeigen („ubiquitousctl account \
        phrase“).
        """,
        "Not all of the account has arrived yet.": "Das Konto ist noch nicht vollständig angekommen.",
        "Not everything on this device has been uploaded yet. The move continues by itself.":
            "Dieses Gerät hat noch nicht alles hochgeladen. Der Wechsel läuft von selbst weiter.",
        "Nothing is stored under the identifier \"{1}\".": "Unter der Kennung „{1}“ ist nichts gespeichert.",
        "Only programs outside of sandboxes are told more.": "Näheres erfahren nur Programme außerhalb einer Sandbox.",
        "Only root may do this.": "Das darf nur root.",
        "Other devices changed the account each time that this one tried to write to it.":
            "Bei jedem Schreibversuch dieses Geräts hatten andere Geräte das Konto gerade geändert.",
        "Other devices changed the list of names on {1} each time that this one tried to write to it.":
            "Bei jedem Schreibversuch dieses Geräts hatten andere Geräte die Namensliste auf {1} gerade geändert.",
        "Other keys: {1}.": "Andere Schlüssel: {1}.",
        """
        Other users may read or write {1}, so it is not used. Make it private with chmod 600, and replace the \
        account's key if somebody may have read it.
        """:
            """
        Andere Benutzer können {1} lesen oder ändern; deshalb wird die Datei nicht verwendet. Schützen Sie sie \
        mit chmod 600, und ersetzen Sie den Schlüssel des Kontos, falls jemand sie gelesen haben könnte.
        """,
        "Parts of the account have not arrived in the remote yet.":
            "Teile des Kontos sind noch nicht am Speicherort angekommen.",
        "Programs go on writing, so the remote never has everything.":
            "Programme schreiben fortwährend, darum hat der Speicherort nie alles.",
        "Sandboxed apps can't read this property.": "Programme in einer Sandbox können diese Eigenschaft nicht lesen.",
        "Say which side is right with \"ubiquitousctl account resolve\".":
            "Entscheiden Sie mit „ubiquitousctl account resolve“, welche Seite gilt.",
        """
        Some parts of the account were only on a device that has been removed, and have not arrived. To move the \
        account without them, use --pass-over-unread.
        """:
            """
        Einige Teile des Kontos lagen nur auf einem Gerät, das entfernt wurde, und sind nicht angekommen. Mit \
        --pass-over-unread wechselt das Konto ohne sie.
        """,
        """
        Something in the account can't be read, and may still be arriving. {1} To move the account without it, use \
        --pass-over-unread; the device that wrote it uploads it again.
        """:
            """
        Ein Teil des Kontos ist nicht lesbar und vielleicht noch unterwegs. {1} Mit --pass-over-unread wechselt \
        das Konto ohne ihn; das Gerät, von dem er stammt, lädt ihn erneut hoch.
        """,
        "Sync is paused on this device.": "Der Abgleich ist auf diesem Gerät angehalten.",
        "TLS 1.2 or later could not be negotiated": "TLS 1.2 oder neuer ließ sich nicht aushandeln",
        "The account already has data. Values can be brought only into a new account.":
            "Das Konto enthält schon Daten. Werte lassen sich nur in ein neues Konto mitnehmen.",
        """
        The account can't be read, because its file {1} is damaged. Sign in again at the same address; the values on \
        this device are kept.
        """:
            """
        Das Konto lässt sich nicht lesen, denn seine Datei {1} ist beschädigt. Melden Sie sich noch einmal an \
        derselben Adresse an; die Werte auf diesem Gerät bleiben erhalten.
        """,
        "The account can't be read. {1}": "Das Konto lässt sich nicht lesen. {1}",
        "The account could not be moved now. The service tries again after the next sync cycle.":
            """
        Das Konto konnte jetzt nicht zum neuen Schlüssel wechseln. Der Dienst versucht es nach dem nächsten \
        Abgleich erneut.
        """,
        """
        The account does not have {1} of the store's changes, because the store is excluded from sync; removing the \
        store loses them. "ubiquitousctl stores sync {2} on" uploads them; "ubiquitousctl stores remove \
        --discard-changes {3}" removes them anyway.
        """:
            """
        Dem Konto fehlen Änderungen des Speichers (Anzahl: {1}), denn er ist vom Abgleich ausgenommen; wer ihn \
        entfernt, verliert sie. „ubiquitousctl stores sync {2} on“ lädt sie hoch; „ubiquitousctl stores remove \
        --discard-changes {3}“ entfernt sie trotzdem.
        """,
        "The account does not have {1} of this device's changes; removing them loses them.":
            "Dem Konto fehlen {1} Änderungen dieses Geräts; durch das Entfernen gehen sie verloren.",
        "The account does not wait for a recovery phrase.": "Das Konto wartet auf keine Wiederherstellungswörter.",
        "The account has an identifier that no cluster can have.":
            "Das Konto hat eine Kennung, die es in einem Cluster nicht geben kann.",
        "The account has an identifier that no folder can have.":
            "Das Konto hat eine Kennung, die es in einem Ordner nicht geben kann.",
        """
        The account has another key than this device. If one of your devices has replaced the key, enter the new \
        recovery phrase; if not, somebody else has put it there: resolve in favour of this device.
        """:
            """
        Das Konto hat einen anderen Schlüssel als dieses Gerät. Wenn eines Ihrer Geräte den Schlüssel ersetzt \
        hat, geben Sie die neuen Wiederherstellungswörter ein; sonst stammt er von jemand anderem: Entscheiden \
        Sie dann zugunsten dieses Geräts.
        """,
        "The account has grown larger than an etcd cluster accepts at once.":
            "Das Konto ist größer geworden, als ein etcd-Cluster auf einmal annimmt.",
        "The account has more stores than fit into one device's head. Remove stores that are not needed.":
            """
        Das Konto hat mehr Speicher, als in die Kopfdatei eines Geräts passen. Entfernen Sie Speicher, die nicht \
        gebraucht werden.
        """,
        "The account has no such device; see ListDevices.": "Das Konto hat kein solches Gerät; siehe ListDevices.",
        "The account is being signed in or checked, or moves to a new key; try again after it.":
            """
        Das Konto wird gerade angemeldet oder geprüft, oder es wechselt zu einem neuen Schlüssel; versuchen Sie \
        es danach noch einmal.
        """,
        "The account is encrypted, and its key is not on this device. Enter its recovery phrase.":
            """
        Das Konto ist verschlüsselt, und sein Schlüssel fehlt auf diesem Gerät. Geben Sie die \
        Wiederherstellungswörter des Kontos ein.
        """,
        "The account is encrypted, and this device does not have its key. Enter its recovery phrase.":
            """
        Das Konto ist verschlüsselt, und diesem Gerät fehlt der Schlüssel. Geben Sie die \
        Wiederherstellungswörter des Kontos ein.
        """,
        "The account is moving to a new key that only this device has. Wait until the move is complete.":
            """
        Das Konto wechselt gerade zu einem neuen Schlüssel, den nur dieses Gerät hat. Warten Sie, bis der \
        Wechsel beendet ist.
        """,
        """
        The account is moving to a new key, for which this device needs all of its values. Remove the store when the \
        move is complete.
        """:
            """
        Das Konto wechselt gerade zu einem neuen Schlüssel; dafür braucht dieses Gerät alle seine Werte. Entfernen \
        Sie den Speicher, wenn der Wechsel abgeschlossen ist.
        """,
        "The account is moving to a new key. Wait until the move is complete.":
            "Das Konto wechselt gerade zu einem neuen Schlüssel. Warten Sie, bis der Wechsel beendet ist.",
        "The account is moving to another key.": "Das Konto wechselt gerade zu einem anderen Schlüssel.",
        "The account is not completely downloaded yet, so it can't be moved. {1}":
            """
        Das Konto ist noch nicht vollständig geladen und kann deshalb nicht zu einem neuen Schlüssel wechseln. \
        {1}
        """,
        """
        The account is not encrypted, and this machine's administrator requires that. Encrypt it with \
        "ubiquitousctl account encrypt" on a device that is signed in to it.
        """:
            """
        Das Konto ist nicht verschlüsselt, aber die Systemverwaltung dieses Rechners verlangt es. Verschlüsseln \
        Sie es mit „ubiquitousctl account encrypt“ auf einem Gerät, das dort angemeldet ist.
        """,
        "The account is not encrypted, so it has no key to replace; encrypt it instead.":
            """
        Das Konto ist nicht verschlüsselt und hat keinen Schlüssel zum Ersetzen; verschlüsseln Sie es \
        stattdessen.
        """,
        "The account is not encrypted, so it has no recovery phrase.":
            "Das Konto ist nicht verschlüsselt und hat keine Wiederherstellungswörter.",
        "The account is still moving to its new key; its recovery phrase will be available when the move is complete.":
            """
        Das Konto wechselt noch zu seinem neuen Schlüssel; seine Wiederherstellungswörter lassen sich anzeigen, \
        sobald der Wechsel beendet ist.
        """,
        "The account names {1} stores, and {2} is the most that are read.":
            "Das Konto nennt {1} Speicher; gelesen werden höchstens {2}.",
        """
        The account that is here is not encrypted, although this device knows it as encrypted. Somebody who can write \
        to the remote has replaced it.
        """:
            """
        Das Konto dort ist nicht verschlüsselt, obwohl dieses Gerät es als verschlüsseltes kennt. Jemand mit \
        Schreibrecht am Speicherort hat es ersetzt.
        """,
        "The account that is here is not encrypted, so it has no recovery phrase.":
            "Das Konto hier ist nicht verschlüsselt und hat keine Wiederherstellungswörter.",
        "The account that is here is not encrypted.": "Das Konto hier ist nicht verschlüsselt.",
        "The account that is here now is not encrypted, and doesn't take the place of an encrypted one.":
            "Das Konto, das jetzt hier liegt, ist nicht verschlüsselt und tritt nicht an die Stelle eines verschlüsselten.",
        "The account that was here is gone.": "Das Konto, das hier lag, ist nicht mehr da.",
        "The account was closed.": "Das Konto wurde geschlossen.",
        "The account was made by a version from before the first release; make a new one.":
            "Das Konto stammt von einer Version aus der Zeit vor der ersten Veröffentlichung; legen Sie ein neues an.",
        "The account was removed just after it was created. Try again.":
            "Das Konto wurde unmittelbar nach dem Anlegen entfernt. Versuchen Sie es noch einmal.",
        "The account was signed in again.": "Das Konto wurde neu angemeldet.",
        "The account was signed out meanwhile.": "Das Konto wurde inzwischen abgemeldet.",
        "The account was signed out.": "Das Konto wurde abgemeldet.",
        "The account was written by a newer version of this service.":
            "Das Konto wurde von einer neueren Version dieses Dienstes geschrieben.",
        "The account {1} is here.": "Hier liegt das Konto {1}.",
        "The account's key can't be read from {1} ({2}). Unlock the account again.":
            "Der Schlüssel des Kontos lässt sich nicht aus {1} lesen ({2}). Entsperren Sie das Konto erneut.",
        "The account's key is not on this device.": "Der Schlüssel des Kontos fehlt auf diesem Gerät.",
        "The account's markers change all the time.": "Die Kontomarken ändern sich ständig.",
        "The account's values have not all arrived yet; try again after that.":
            "Die Werte des Kontos sind noch nicht alle angekommen; versuchen Sie es danach noch einmal.",
        "The address can't be used: {1}.": "Die Adresse lässt sich nicht verwenden: {1}.",
        "The answer from {1} is larger than any valid one, so it was discarded.":
            "Die Antwort von {1} ist größer als jede gültige und wurde verworfen.",
        "The answer would have more than {1} MiB. Ask for a part of it at a time.":
            "Die Antwort hätte mehr als {1} MiB. Fragen Sie sie in Teilen ab.",
        "The app has {1} domains, and in a sandbox it may have no more. Remove one.":
            "Das Programm hat {1} Domains; mehr darf es in einer Sandbox nicht haben. Entfernen Sie eine.",
        "The app's domains have {1} bytes, the write needs {2}, and a sandboxed app may have {3}. Remove values.":
            """
        Die Domains des Programms haben {1} Bytes, die Änderung bräuchte {2} mehr, und in einer Sandbox sind {3} \
        erlaubt. Entfernen Sie Werte.
        """,
        "The arguments are not of the types {1}.": "Die Argumente haben nicht die Typen {1}.",
        "The arguments of this call may have {1} bytes.":
            "Die Argumente dieses Aufrufs dürfen höchstens {1} Bytes haben.",
        "The bus can't be reached: {1}.": "Der Bus ist nicht erreichbar: {1}.",
        "The bus doesn't know the caller's user.": "Der Bus kennt den Benutzer des aufrufenden Programms nicht.",
        "The bus has not said who sends this. Call again.":
            "Der Bus hat den Absender nicht mitgeteilt. Wiederholen Sie den Aufruf.",
        "The call was not answered.": "Der Aufruf wurde nicht beantwortet.",
        "The caller's app declares several stores; name the identifier of one.":
            "Das aufrufende Programm deklariert mehrere Speicher; geben Sie eine der Kennungen an.",
        "The caller's user id is a subordinate one, for containers (/etc/subuid), and can't have stores.":
            """
        Die UID des aufrufenden Programms ist eine untergeordnete für Container (/etc/subuid) und kann keine \
        Speicher haben.
        """,
        "The certificate of {1} is not trusted: {2}.": "Dem Zertifikat von {1} wird nicht vertraut: {2}.",
        "The certificates to trust are not valid PEM, or take too long to read.":
            "Die angegebenen Zertifikate sind kein gültiges PEM, oder es dauert zu lange, sie zu lesen.",
        """
        The cluster has more rows under this prefix than an account can have. Check whether something else uses the \
        prefix.
        """:
            """
        Der Cluster hat unter diesem Präfix mehr Einträge, als ein Konto haben kann. Prüfen Sie, ob das Präfix \
        noch anderweitig verwendet wird.
        """,
        "The cluster has no leader: more than half of its members are down. Restart them.":
            """
        Der Cluster hat keinen Leader: Mehr als die Hälfte seiner Mitglieder ist ausgefallen. Starten Sie sie \
        neu.
        """,
        "The cluster has raised the alarm CORRUPT, and rejects all requests.":
            "Der Cluster hat den Alarm CORRUPT ausgelöst und lehnt alle Anfragen ab.",
        "The cluster of {1} is out of space and rejects writes.":
            "Der Cluster von {1} hat keinen Platz mehr und nimmt keine Änderungen an.",
        "The cluster of {1} is unavailable: {2}.": "Der Cluster von {1} ist nicht verfügbar: {2}.",
        "The cluster of {1} rejects all requests: it has raised the alarm CORRUPT.":
            "Der Cluster von {1} lehnt alle Anfragen ab: Er hat den Alarm CORRUPT ausgelöst.",
        "The cluster was restored from a copy, or much was written to the account.":
            "Der Cluster wurde aus einer Kopie wiederhergestellt, oder das Konto wurde stark verändert.",
        "The cluster's answer is invalid.": "Die Antwort des Clusters ist ungültig.",
        "The connection doesn't read its replies, and {1} of its calls wait. Read the replies.":
            "Die Verbindung liest ihre Antworten nicht, und {1} ihrer Aufrufe warten. Lesen Sie die Antworten.",
        """
        The connection is not encrypted: anyone on the network path can read and change the password and all values. \
        Use {1}:// if the server has TLS.
        """:
            """
        Die Verbindung ist nicht verschlüsselt: Jeder auf dem Netzwerkweg kann das Passwort und alle Werte lesen \
        und ändern. Verwenden Sie {1}://, wenn der Server TLS hat.
        """,
        "The connection to {1} broke off.": "Die Verbindung zu {1} ist abgebrochen.",
        "The connection was closed.": "Die Verbindung wurde geschlossen.",
        "The connection's answers are unread. Read them, and call again.":
            "Die Verbindung hat ungelesene Antworten. Lesen Sie sie, und wiederholen Sie den Aufruf.",
        "The database was damaged; its values are on their way from the account's remote.":
            "Die Datenbank war beschädigt; ihre Werte werden gerade vom Speicherort des Kontos geladen.",
        "The directory {1} can't be read: {2}.": "Das Verzeichnis {1} lässt sich nicht lesen: {2}.",
        "The domain can't be opened: {1}.": "Die Domain lässt sich nicht öffnen: {1}.",
        "The domain is not the caller's to remove.": "Das aufrufende Programm darf diese Domain nicht entfernen.",
        "The domain's values would take {1} bytes in a D-Bus message, and {2} is the most. Keep large data in files.":
            """
        Die Werte der Domain bräuchten in einer D-Bus-Nachricht {1} Bytes; erlaubt sind höchstens {2}. Große \
        Daten gehören in Dateien.
        """,
        "The encoding is damaged or not ours, at byte {1}: {2}.":
            "Die Codierung ist ab Byte {1} beschädigt oder fremd: {2}.",
        "The file h/{1} belongs to another account and is skipped.":
            "Die Datei h/{1} gehört zu einem anderen Konto und wird übergangen.",
        "The file h/{1} is damaged: {2}.": "Die Datei h/{1} ist beschädigt: {2}.",
        "The file h/{1} is not a head, or has not arrived completely.":
            "Die Datei h/{1} ist keine Kopfdatei oder noch nicht vollständig angekommen.",
        """
        The file h/{1} is not under the account's key and is skipped. If the key was replaced, the device that did so \
        removes the file a quarter of an hour later.
        """:
            """
        Die Datei h/{1} ist nicht mit dem Schlüssel des Kontos verschlüsselt und wird übergangen. Wurde der \
        Schlüssel ersetzt, entfernt das Gerät, das ihn ersetzt hat, die Datei eine Viertelstunde später.
        """,
        "The file h/{1} is of a format that is not read any more.":
            "Die Datei h/{1} hat ein Format, das nicht mehr gelesen wird.",
        "The file h/{1} {2}.": "Die Datei h/{1} {2}.",
        "The file s/{1} is corrupt.": "Die Datei s/{1} ist fehlerhaft.",
        "The file s/{1} is damaged.": "Die Datei s/{1} ist beschädigt.",
        "The file s/{1} is missing. The service retries.": "Die Datei s/{1} fehlt. Der Dienst versucht es erneut.",
        "The file s/{1} is not of the store {2}.": "Die Datei s/{1} gehört nicht zum Speicher {2}.",
        "The file s/{1} {2}.": "Die Datei s/{1} {2}.",
        "The file that says which account is here is damaged or has not arrived completely.":
            "Die Datei, in der steht, welches Konto hier liegt, ist beschädigt oder noch nicht vollständig angekommen.",
        "The file {1} on {2} is damaged, or has not arrived completely.":
            "Die Datei {1} auf {2} ist beschädigt oder noch nicht vollständig angekommen.",
        "The file {1}/{2} can't be copied: {3}.": "Die Datei {1}/{2} lässt sich nicht kopieren: {3}.",
        "The flags 0x{1} are unknown.": "Die Flags 0x{1} sind unbekannt.",
        "The folder h holds names with control characters, which nobody gives; they are skipped.":
            "Der Ordner h enthält Namen mit Steuerzeichen, die kein Gerät vergibt; sie werden übergangen.",
        "The folder h holds too many files; some were not read.":
            "Der Ordner h enthält zu viele Dateien; einige wurden nicht gelesen.",
        "The folder {1} can't be made on {2}: make the one above it first.":
            "Der Ordner {1} lässt sich auf {2} nicht anlegen: Legen Sie zuerst den übergeordneten an.",
        "The folder {1} holds too many files; some were not looked at.":
            "Der Ordner {1} enthält zu viele Dateien; einige blieben unbeachtet.",
        "The form of the address is unknown": "Die Form der Adresse ist unbekannt",
        "The heads in the folder h are too large together; some were not read.":
            "Die Kopfdateien im Ordner h sind zusammen zu groß; einige wurden nicht gelesen.",
        "The identifier \"{1}\" is declared by an installed manifest.":
            "Die Kennung „{1}“ ist bereits in einem installierten Manifest deklariert.",
        """
        The identifier \"{1}\" is declared by apps that share neither their team nor their application-identifier, so \
        none of them gets it. Their manifests are {2}.
        """: """
        Die Kennung „{1}“ deklarieren Apps, die weder dasselbe Team noch dieselbe application-identifier haben, darum \
        bekommt sie keine von ihnen. Ihre Manifeste sind {2}.
        """,
        "The key \"{1}\" comes twice.": "Der Schlüssel „{1}“ kommt zweimal vor.",
        "The key contains U+0000; leave that character out.":
            "Der Schlüssel enthält U+0000; lassen Sie das Zeichen weg.",
        "The key contains a noncharacter, such as U+FFFF; leave that character out.":
            "Der Schlüssel enthält ein Nichtzeichen wie U+FFFF; lassen Sie das Zeichen weg.",
        "The key has {1} UTF-16 code units; shorten it to at most {2}.":
            "Der Schlüssel hat {1} UTF-16-Einheiten; kürzen Sie ihn auf höchstens {2}.",
        "The key is empty; give it at least one character.":
            "Der Schlüssel ist leer; geben Sie ihm mindestens ein Zeichen.",
        "The key that the account is moving to is not on this device.":
            "Der Schlüssel, zu dem das Konto wechselt, fehlt auf diesem Gerät.",
        "The library sd-bus failed at {1}: {2}.": "In der Bibliothek sd-bus ist ein Fehler aufgetreten ({1}): {2}.",
        "The listing from {1} is invalid: {2}.": "Die Auflistung von {1} ist ungültig: {2}.",
        "The manifest is refused: {1}.": "Das Manifest wird abgelehnt: {1}.",
        "The manifests of a store may have at most {1} local keys together.":
            "Die Manifeste eines Speichers dürfen zusammen höchstens {1} lokale Schlüssel haben.",
        "The message ends where {1} should come.": "Die Nachricht endet zu früh; erwartet wird noch: {1}.",
        "The message has more than {1} {2} in one array.": "Die Nachricht hat mehr als {1} {2} in einem Array.",
        "The option \"ca-pem\" has {1}.": "Für die Option „ca-pem“ gilt: {1}.",
        "The option \"unless-changed-since\" goes with no other option.":
            "Die Option „unless-changed-since“ lässt sich mit keiner anderen kombinieren.",
        "The option \"{1}\" comes twice.": "Die Option „{1}“ kommt zweimal vor.",
        "The option \"{1}\" contains a control character, such as a line feed. Leave it out.":
            "Die Option „{1}“ enthält ein Steuerzeichen, etwa einen Zeilenumbruch. Lassen Sie es weg.",
        "The option \"{1}\" has to be of the type {2}.": "Die Option „{1}“ muss den Typ {2} haben.",
        "The option \"{1}\" is unknown.": "Die Option „{1}“ ist unbekannt.",
        "The option \"{1}\" may have at most 8192 bytes.": "Die Option „{1}“ darf höchstens 8192 Bytes haben.",
        "The part of the store {1} in h/{2} is corrupt.": "Der Teil des Speichers {1} in h/{2} ist fehlerhaft.",
        """
        The path is wrong: {1} has no folder {2} in which {3} could be created. Check the spelling; on Nextcloud, \
        the user's name follows /files/, and upper and lower case matter.
        """:
            """
        Der Pfad stimmt nicht: Auf {1} gibt es keinen Ordner {2}, in dem sich {3} anlegen ließe. Prüfen Sie die \
        Schreibweise; bei Nextcloud folgt auf /files/ der Benutzername, und Groß- und Kleinschreibung zählt.
        """,
        "The program \"{1}\" has no domain of its own; name one.":
            "Das Programm „{1}“ hat keine eigene Domain; geben Sie eine an.",
        "The program has more rights than its caller, so the environment can't name its bus.":
            """
        Das Programm hat mehr Rechte als der Benutzer, der es aufgerufen hat; deshalb kann die Umgebung seinen \
        Bus nicht bestimmen.
        """,
        "The proxy requires a password: add it to the address in https_proxy.":
            "Der Proxy verlangt ein Passwort; es gehört in die Adresse in https_proxy.",
        "The proxy {1}{2}.": "Der Proxy {1}{2}.",
        "The recovery phrase is not the one of the account at this address. Check that it is the right one.":
            """
        Die Wiederherstellungswörter gehören nicht zum Konto an dieser Adresse. Prüfen Sie, ob es die richtigen \
        sind.
        """,
        """
        The recovery phrase is right, but the remote has other keys too: {1}. If none of your devices has made them, \
        reject them.
        """:
            """
        Die Wiederherstellungswörter stimmen, aber am Speicherort gibt es noch andere Schlüssel: {1}. Wenn \
        keines Ihrer Geräte sie erzeugt hat, lehnen Sie sie ab.
        """,
        "The recovery phrase is too long. Enter its 12 words, and nothing else.":
            "Die Eingabe ist zu lang. Geben Sie nur die 12 Wiederherstellungswörter ein.",
        """
        The recovery phrase is wrong: a word is incorrect, or two are swapped. Compare it with what you wrote down.
        """:
            """
        Die Wiederherstellungswörter passen nicht zusammen: Eines ist falsch, oder zwei sind vertauscht. \
        Vergleichen Sie sie mit Ihrer Notiz.
        """,
        """
        The recovery phrase opens none of the first {1} keys in the remote, more than people make. Remove those in \
        its folder a that none of your devices has made.
        """:
            """
        Die Wiederherstellungswörter öffnen keinen der ersten {1} Schlüssel am Speicherort, und mehr erzeugt \
        niemand. Entfernen Sie aus dem Ordner a dort alle, die keines Ihrer Geräte erzeugt hat.
        """,
        "The remote did not answer within a minute.": "Der Speicherort hat innerhalb einer Minute nicht geantwortet.",
        """
        The remote doesn't keep what this device uploads. Look for a program that removes or empties files there.
        """:
            """
        Der Speicherort behält nicht, was dieses Gerät hochlädt. Suchen Sie nach einem Programm, das dort Dateien löscht \
        oder leert.
        """,
        "The remote holds another account, or was emptied.":
            "Am Speicherort liegt ein anderes Konto, oder er wurde geleert.",
        """
        The remote holds the account under a former key: somebody has restored an earlier state, and may have the \
        former recovery phrase. Resolve in favour of this device, so that the account continues under its key.
        """:
            """
        Am Speicherort liegt das Konto unter einem früheren Schlüssel: Jemand hat einen älteren Stand \
        wiederhergestellt und kennt vielleicht die früheren Wiederherstellungswörter. Entscheiden Sie zugunsten \
        dieses Geräts, damit für das Konto wieder dessen Schlüssel gilt.
        """,
        """
        The remote still has the account's files from before it had this key. This device removes them ten minutes \
        after the move, once its recovery phrase was shown. Leave the account after that.
        """:
            """
        Am Speicherort liegen noch Dateien des Kontos aus der Zeit vor diesem Schlüssel. Dieses Gerät entfernt \
        sie zehn Minuten nach dem Wechsel, sofern die Wiederherstellungswörter angezeigt wurden. Verlassen Sie \
        das Konto erst danach.
        """,
        "The row that says which account the cluster holds is corrupt.":
            "Der Eintrag, in dem steht, welches Konto im Cluster liegt, ist fehlerhaft.",
        "The server does not say what time it is.": "Der Server teilt die Uhrzeit nicht mit.",
        "The server ignores {1}. That does no harm: the service doesn't rely on it.":
            "Der Server beachtet {1} nicht; das macht nichts, denn der Dienst ist nicht darauf angewiesen.",
        "The server lists no folders, so files with the names in them are kept.":
            "Der Server listet keine Ordner auf; deshalb werden die Namen in eigenen Dateien geführt.",
        """
        The server refused the credentials before this start. They are tried again within the hour, or at once with \
        "ubiquitousctl account sync".
        """:
            """
        Der Server hat die Zugangsdaten vor diesem Start abgelehnt. Sie werden innerhalb einer Stunde wieder \
        versucht, mit „ubiquitousctl account sync“ sofort.
        """,
        "The server's clock is {1} {2} this device's.": "Die Uhr des Servers geht gegenüber der dieses Geräts {1} {2}.",
        "The service can't tell what sandbox the caller is in, and opens no store for it.":
            """
        Der Dienst kann nicht feststellen, in welcher Sandbox das aufrufende Programm läuft, und öffnet ihm \
        keinen Speicher.
        """,
        "The service can't tell what sandbox the caller is in.":
            "Der Dienst kann nicht feststellen, in welcher Sandbox das aufrufende Programm läuft.",
        "The service can't tell which app the caller is; name the store's identifier.":
            "Der Dienst kann nicht feststellen, welches Programm ihn aufruft; geben Sie die Kennung des Speichers an.",
        """
        The service ended unexpectedly during the last sync cycles of this account. The next one begins in {1} min, \
        or at once with "ubiquitousctl account sync".
        """:
            """
        Der Dienst wurde bei den letzten Abgleichen dieses Kontos unerwartet beendet. Der nächste beginnt in {1} \
        min, mit „ubiquitousctl account sync“ sofort.
        """,
        "The service ended unexpectedly when it last entered the account. It can be entered in {1} min.":
            """
        Der Dienst wurde unerwartet beendet, als er sich zuletzt mit dem Konto verband. Das ist in {1} min wieder \
        möglich.
        """,
        "The service ended unexpectedly when it last opened this user's data. It tries again in {1} min.":
            """
        Der Dienst wurde unerwartet beendet, als er zuletzt die Daten dieses Benutzers öffnete. Er versucht es in \
        {1} min erneut.
        """,
        "The service has no memory to spare for the answer from {1}. It retries later.":
            "Der Dienst hat nicht genug Arbeitsspeicher für die Antwort von {1}. Er versucht es später erneut.",
        """
        The service has no memory to spare for this remote's data, because other accounts hold the rest. It retries \
        later.
        """:
            """
        Der Dienst hat nicht genug Arbeitsspeicher für die Daten dieses Speicherorts, weil andere Konten ihn \
        belegen. Er versucht es später erneut.
        """,
        "The service is ending.": "Der Dienst wird gerade beendet.",
        "The service isn't running, and isn't installed for this bus.":
            "Der Dienst läuft nicht und ist für diesen Bus nicht installiert.",
        "The service isn't running.": "Der Dienst läuft nicht.",
        "The service's data can't be read or written: {1}.":
            "Die Daten des Dienstes lassen sich nicht lesen oder schreiben: {1}.",
        "The side is \"local\" or \"remote\".": "Als Seite ist „local“ oder „remote“ möglich.",
        "The state directory {1} can't be read: {2}.": "Das Zustandsverzeichnis {1} lässt sich nicht lesen: {2}.",
        "The store has {1} keys of {2} (limit keys), and with the write it would have {3}.":
            "Der Speicher hat {1} von {2} Schlüsseln (Grenze keys); mit der Änderung wären es {3}.",
        "The store is at generation {1} already. Read it and try again.":
            "Der Speicher ist schon bei Generation {1}. Lesen Sie ihn, und versuchen Sie es noch einmal.",
        "The store is excluded from sync. \"ubiquitousctl stores sync {1} on\" includes it.":
            "Der Speicher ist vom Abgleich ausgenommen. „ubiquitousctl stores sync {1} on“ bezieht ihn ein.",
        "The store {1} has grown too large to be joined any further. Remove keys that are no longer needed.":
            """
        Der Speicher {1} ist zu groß geworden, um noch weitere Änderungen aufzunehmen. Entfernen Sie Schlüssel, \
        die nicht mehr gebraucht werden.
        """,
        "The store {1} has grown too large to be synchronised.":
            "Der Speicher {1} ist zu groß geworden, um abgeglichen zu werden.",
        """
        The store {1} holds entries that break the rules for keys and values ({2}). They are kept and passed on to \
        other devices, but hidden from apps.
        """:
            """
        Der Speicher {1} enthält Einträge, die gegen die Regeln für Schlüssel und Werte verstoßen ({2}). Sie \
        bleiben erhalten und werden an andere Geräte weitergegeben, Programmen aber nicht gezeigt.
        """,
        "The store {1} is larger in the cluster than a store may be.":
            "Der Speicher {1} ist im Cluster größer als erlaubt.",
        "The store's values take {1} of {2} bytes (limit total-bytes), and with the write they would take {3}.":
            "Die Werte des Speichers belegen {1} von {2} Bytes (Grenze total-bytes); mit der Änderung wären es {3}.",
        "The user has sent too many calls that expect no reply. Expect replies, or send fewer at once.":
            """
        Der Benutzer hat zu viele Aufrufe gesendet, die keine Antwort erwarten. Erwarten Sie Antworten, oder \
        senden Sie weniger auf einmal.
        """,
        "The user has too many calls that are not answered yet.":
            "Der Benutzer hat zu viele Aufrufe, die noch nicht beantwortet sind.",
        "The user has {1} domains, and may have no more. See ubiquitousctl defaults domains.":
            "Der Benutzer hat {1} Domains; mehr sind nicht erlaubt. Siehe „ubiquitousctl defaults domains“.",
        "The user {1} has data already. With 0x1, that is set aside.":
            "Der Benutzer {1} hat bereits Daten. Mit 0x1 werden diese beiseitegelegt.",
        "The user's database is damaged. The service's log has the details.":
            "Die Datenbank des Benutzers ist beschädigt. Einzelheiten stehen im Protokoll des Dienstes.",
        "The user's database was written by a newer version of the service; install that.":
            """
        Die Datenbank des Benutzers wurde von einer neueren Version des Dienstes geschrieben; installieren Sie \
        diese.
        """,
        "The user's other calls have kept the service busy, and this one is too large to wait. Call again.":
            """
        Andere Aufrufe des Benutzers haben den Dienst ausgelastet, und dieser ist zu groß, um zu warten. \
        Wiederholen Sie den Aufruf.
        """,
        "The user's other calls left no room or time for this, and it can't wait; call again.":
            """
        Andere Aufrufe des Benutzers ließen für diesen keinen Platz oder keine Zeit, und er kann nicht warten; \
        wiederholen Sie ihn.
        """,
        "The user's unanswered calls have too many arguments. Wait for their answers.":
            "Die unbeantworteten Aufrufe des Benutzers haben zu viele Argumente. Warten Sie auf ihre Antworten.",
        "The user's unanswered calls take {1} bytes. Wait for their answers.":
            "Die unbeantworteten Aufrufe des Benutzers belegen {1} Bytes. Warten Sie auf ihre Antworten.",
        "The value has at least {1} bytes and the limit is {2}; keep large data in a file.":
            "Der Wert hat mindestens {1} Bytes; erlaubt sind höchstens {2}. Große Daten gehören in eine Datei.",
        "The value of \"{1}\" can't be stored. {2}": "Der Wert von „{1}“ lässt sich nicht speichern. {2}",
        "The value of \"{1}\" is nested deeper than {2} containers.":
            "Der Wert von „{1}“ ist mehr als {2}-fach verschachtelt.",
        "The values are far larger than a store may be.": "Die Werte sind viel größer, als ein Speicher sein darf.",
        """
        The values in the user's stores and domains in use take {1} bytes of memory, and there is no room for {2} \
        more. End programs that use large values, and keep large data in files.
        """:
            """
        Die Werte in den benutzten Speichern und Domains des Benutzers belegen {1} Bytes Arbeitsspeicher; für \
        {2} weitere ist kein Platz. Beenden Sie Programme, die große Werte verwenden; große Daten gehören in \
        Dateien.
        """,
        """
        The values of all of the user's stores and defaults domains take {1} bytes of {2} (limit database-bytes), \
        and with the write they would take {3}. Remove values, stores or domains that are not needed.
        """:
            """
        Die Werte in allen Speichern und Defaults-Domains des Benutzers belegen {1} von {2} Bytes (Grenze \
        database-bytes); mit der Änderung wären es {3}. Entfernen Sie Werte, Speicher oder Domains, die nicht \
        gebraucht werden.
        """,
        "There can be no such key.": "Einen solchen Schlüssel kann es nicht geben.",
        "There is another account here than before.": "Hier liegt ein anderes Konto als zuvor.",
        "There is another account here than the one that is signed in.":
            "Hier liegt ein anderes Konto als das angemeldete.",
        "There is no account here that can be found while {1} lists no folders.":
            "Hier ist kein Konto zu finden, solange {1} keine Ordner auflistet.",
        "There is no account here yet, and this machine's administrator requires a new one to be encrypted.":
            """
        Hier gibt es noch kein Konto, und die Systemverwaltung dieses Rechners verlangt, dass ein neues \
        verschlüsselt wird.
        """,
        "There is no account here yet.": "Hier gibt es noch kein Konto.",
        "There is no backend for \"{1}:\"": "Für „{1}:“ gibt es kein Backend",
        "There is no data \"{1}\"; see ListData.": "Es gibt keine Daten „{1}“; siehe ListData.",
        "There is no folder for {1} on {2}.": "Auf {2} gibt es keinen Ordner für {1}.",
        "There is no folder {1} on {2}.": "Auf {2} gibt es keinen Ordner {1}.",
        "There is no interface {1}.": "Es gibt keine Schnittstelle {1}.",
        "There is no key \"{1}\".": "Es gibt keinen Schlüssel „{1}“.",
        "There is no object {1}.": "Es gibt kein Objekt {1}.",
        "There is no property {1}.": "Es gibt keine Eigenschaft {1}.",
        "There is no room in memory for {1} bytes more. Keep large data in files.":
            "Im Arbeitsspeicher ist kein Platz für weitere {1} Bytes. Legen Sie große Daten in Dateien ab.",
        "There is no room left for the user's data (limit database-bytes). Remove values that are not needed.":
            """
        Für die Daten des Benutzers ist kein Platz mehr (Grenze database-bytes). Entfernen Sie nicht benötigte \
        Werte.
        """,
        "There is no secure connection to {1}: {2}.": "Zu {1} kommt keine sichere Verbindung zustande: {2}.",
        "There is no server {1}, or its name can't be looked up now.":
            "Es gibt keinen Server {1}, oder sein Name lässt sich derzeit nicht auflösen.",
        "There is no space left for the data of this user; nothing was stored.":
            "Für die Daten dieses Benutzers ist kein Platz mehr; es wurde nichts gespeichert.",
        "There is no space left for {1}: {2}.": "Für {1} ist kein Platz mehr: {2}.",
        """
        There is no space left in {1} for a copy of the data, which is made there first. Free some, or stop the \
        service and copy the files.
        """:
            """
        In {1} ist kein Platz für die Kopie der Daten, die dort zuerst angelegt wird. Schaffen Sie welchen, oder \
        halten Sie den Dienst an und kopieren Sie die Dateien.
        """,
        "There is no space left on this device for the user's data. Free some.":
            "Auf diesem Gerät ist kein Platz mehr für die Daten des Benutzers. Schaffen Sie welchen.",
        "There is no space left on {1}.": "Auf {1} ist kein Platz mehr.",
        "There is no space left: the cluster has raised the alarm NOSPACE.":
            "Es ist kein Platz mehr: Der Cluster hat den Alarm NOSPACE ausgelöst.",
        "There is no store \"{1}\".": "Es gibt keinen Speicher „{1}“.",
        "There is no such domain: {1}.": "Eine solche Domain gibt es nicht: {1}.",
        "There is nothing to resolve: the remote has not been emptied or replaced.":
            "Es gibt nichts zu entscheiden: Der Speicherort wurde weder geleert noch ersetzt.",
        "This can't be sent: {1}.": "Die Anfrage lässt sich nicht senden: {1}.",
        "This device has no certificates of authorities to trust. Install ca-certificates.":
            """
        Auf diesem Gerät fehlen die Zertifikate vertrauenswürdiger Zertifizierungsstellen. Installieren Sie \
        ca-certificates.
        """,
        "This device's database can't be read or written: {1}.":
            "Die Datenbank dieses Geräts lässt sich nicht lesen oder schreiben: {1}.",
        "This device's database can't be used: {1}.": "Die Datenbank dieses Geräts lässt sich nicht verwenden: {1}.",
        "This device's database is damaged: {1}.": "Die Datenbank dieses Geräts ist beschädigt: {1}.",
        "This is not a domain.": "Das ist keine Domain.",
        "This is not a valid WebDAV address: {1}.": "Das ist keine gültige WebDAV-Adresse: {1}.",
        "This is not a valid etcd address: {1}.": "Das ist keine gültige etcd-Adresse: {1}.",
        """
        This is not the account that this device is signed in to, and whose file can't be read. Sign in at its address, \
        or sign out first.
        """:
            """
        Das ist nicht das Konto, bei dem dieses Gerät angemeldet ist und dessen Datei sich nicht lesen lässt. Melden \
        Sie sich an seiner Adresse an, oder melden Sie sich zuerst ab.
        """,
        "This recovery phrase was replaced by another one. Enter the new one.":
            "Diese Wiederherstellungswörter wurden durch andere ersetzt. Geben Sie die neuen ein.",
        "This request is too large for {1}.": "Diese Anfrage ist zu groß für {1}.",
        "This user may not read and write keys under {1}/ on {2}.":
            "Dieser Benutzer darf auf {2} keine Schlüssel unter {1}/ lesen und schreiben.",
        "Too much was sent before it was known who sends it. Call again.":
            "Es wurde zu viel gesendet, bevor der Bus den Absender mitgeteilt hatte. Wiederholen Sie den Aufruf.",
        "Transactions don't do what those of etcd do. Check that the address is a cluster's.":
            "Transaktionen verhalten sich anders als bei etcd. Prüfen Sie, ob die Adresse zu einem Cluster gehört.",
        "Uploaded without encryption, and not read any more: by {1}.":
            "Unverschlüsselt hochgeladen und nicht mehr gelesen: von {1}.",
        "Uploads from before the account got its key may still be in the remote.":
            """
        Am Speicherort liegt vielleicht noch etwas, das hochgeladen wurde, bevor das Konto seinen Schlüssel \
        bekam.
        """,
        "Uploads that are damaged or under another key: {1}.":
            "Beschädigt oder mit anderem Schlüssel hochgeladen: {1}.",
        "What other devices have written to {1} waits. {2}": "Änderungen anderer Geräte an {1} müssen warten. {2}",
        "What was deleted is still listed.": "Gelöschtes wird noch aufgelistet.",
        "What was deleted is still there.": "Gelöschtes ist noch da.",
        "What was written is not listed.": "Geschriebenes wird nicht aufgelistet.",
        "Word {1} of the recovery phrase is not in the list of words. Check its spelling.":
            "Das {1}. Wiederherstellungswort steht nicht in der Wortliste. Prüfen Sie die Schreibweise.",
        "a % must be followed by two hexadecimal digits": "auf ein % müssen zwei Hexadezimalziffern folgen",
        "a % must be followed by two hexadecimal digits, and control characters are not allowed":
            "auf ein % müssen zwei Hexadezimalziffern folgen, und Steuerzeichen sind nicht erlaubt",
        "a base does not have all buckets": "einer Basis fehlen Buckets",
        "a call": "bei einem Aufruf",
        "a call to the bus": "bei einem Aufruf an den Bus",
        "a connection": "bei einer Verbindung",
        "a count of {1} does not fit into the bytes that are left":
            "eine Anzahl von {1} passt nicht in die übrigen Bytes",
        "a counter is too large": "ein Zähler ist zu groß",
        "a date is infinite or not a number": "ein Datum ist unendlich oder keine Zahl",
        "a dictionary": "ein Dictionary",
        "a dictionary has a key twice": "ein Dictionary enthält einen Schlüssel zweimal",
        "a dictionary's keys are out of order": "die Schlüssel eines Dictionarys sind nicht sortiert",
        """
        a domain's name is 1 to 255 bytes of UTF-8 without slashes and control characters, and neither "." nor \
        ".."
        """:
            """
        der Name einer Domain hat 1 bis 255 Bytes UTF-8 ohne Schrägstriche und Steuerzeichen und ist weder „.“ \
        noch „..“
        """,
        "a folder is not the root directory; name one in it":
            "das Wurzelverzeichnis ist nicht möglich; geben Sie einen Ordner darin an",
        "a folder is on this machine; write three slashes, as in folder:///home/ada/Sync":
            "ein Ordner liegt auf diesem Rechner; schreiben Sie drei Schrägstriche, wie in folder:///home/ada/Sync",
        "a folder's address must begin with folder:///": "die Adresse eines Ordners muss mit folder:/// beginnen",
        "a folder's address must not contain a query or a fragment; write %3F and %23 in a name":
            """
        die Adresse eines Ordners darf keine Abfrage (?) und kein Fragment (#) enthalten; schreiben Sie in Namen \
        %3F und %23
        """,
        "a header has control characters in it": "eine Kopfzeile enthält Steuerzeichen",
        "a key is both present and absent": "ein Schlüssel ist zugleich vorhanden und entfernt",
        "a key is removed that is not in the base": "ein Schlüssel wird entfernt, der nicht in der Basis steht",
        "a key is too long": "ein Schlüssel ist zu lang",
        "a length of {1} reaches beyond the end": "eine Länge von {1} reicht über das Ende hinaus",
        "a match rule": "bei einer Filterregel",
        "a name is too long": "ein Name ist zu lang",
        "a number has more than 64 bits": "eine Zahl hat mehr als 64 Bit",
        "a number is longer than it need be": "eine Zahl ist länger als nötig",
        "a part has no such form": "ein Teil hat keine solche Form",
        "a path must begin with a slash and must not contain U+0000":
            "ein Pfad muss mit einem Schrägstrich beginnen und darf kein U+0000 enthalten",
        "a piece of it has no end": "ein Teil davon hat kein Ende",
        "a port is 1 to 65535, and an IPv6 address is in brackets":
            "ein Port liegt zwischen 1 und 65535, und eine IPv6-Adresse steht in eckigen Klammern",
        "a segment has no such name": "ein Segment hat keinen solchen Namen",
        "a signal": "bei einem Signal",
        "a signal's destination": "beim Ziel eines Signals",
        "a stamp is beyond every clock": "ein Zeitstempel liegt unmöglich weit in der Zukunft",
        "a store is both present and absent": "ein Speicher ist zugleich vorhanden und entfernt",
        "a string": "eine Zeichenkette",
        "a string contains U+0000": "eine Zeichenkette enthält U+0000",
        "a string contains a noncharacter": "eine Zeichenkette enthält ein Nichtzeichen",
        "a string has a character that no message can carry":
            "eine Zeichenkette enthält ein Zeichen, das keine Nachricht übertragen kann",
        "a string is not UTF-8": "eine Zeichenkette ist kein UTF-8",
        "a value": "ein Wert",
        "a version vector is out of order": "ein Versionsvektor ist nicht sortiert",
        "a write has no such number": "ein Schreibvorgang hat keine solche Nummer",
        "ahead of": "vor",
        "answering": "beim Antworten",
        "at an unknown time": "unbekannt",
        "at byte {1} {2}": "bei Byte {1}: {2}",
        "behind": "nach",
        "buckets are out of order": "Buckets sind nicht sortiert",
        "bytes": "Bytes",
        "bytes follow the end ({1})": "nach dem Ende folgen Bytes ({1})",
        "can't be read: {1}": "lässt sich nicht lesen: {1}",
        "certificate has expired": "es ist abgelaufen",
        "certificate is not yet valid": "es ist noch nicht gültig",
        "connecting to the bus": "beim Verbinden mit dem Bus",
        "containers are nested deeper than {1}": "Container sind mehr als {1}-fach verschachtelt",
        "copying a value": "beim Kopieren eines Werts",
        "did not answer in time": "hat nicht rechtzeitig geantwortet",
        "did not let the request through: it answered {1}": "hat die Anfrage nicht durchgelassen: Die Antwort war {1}",
        "did not let the request through: {1}": "hat die Anfrage nicht durchgelassen: {1}",
        "each has to be an absolute path": "jeder Eintrag muss ein absoluter Pfad sein",
        "encoding an object path": "beim Codieren eines Objektpfads",
        "is corrupt": "ist fehlerhaft",
        "is not a file": "ist keine normale Datei",
        "is too large": "ist zu groß",
        "is unknown: its name can't be looked up now": "ist unbekannt: Sein Name lässt sich derzeit nicht auflösen",
        "it answers \"{1}\"": "die Antwort lautet „{1}“",
        "it can't start a request": "eine Anfrage ließ sich nicht starten",
        "it could not be started": "der Start ist fehlgeschlagen",
        "it doesn't answer as etcd does (status {1})": "die Antwort ist nicht die von etcd (Status {1})",
        "it doesn't match the address, or no authority that this device trusts has signed it":
            """
        es passt nicht zur Adresse, oder keine Zertifizierungsstelle, der dieses Gerät vertraut, hat es \
        unterschrieben
        """,
        "it doesn't support TLS 1.2": "TLS 1.2 wird dort nicht unterstützt",
        "it has a document type": "sie hat einen Dokumenttyp",
        "it has no end": "sie hat kein Ende",
        "it has no sockets to wait for": "es gibt keine Sockets zum Warten",
        "it has no {1}": "es fehlt {1}",
        "it has to be a string": "es muss eine Zeichenkette sein",
        "it has to be an array of strings": "es muss ein Array von Zeichenketten sein",
        "it has to be the app id, such as org.example.Notes": "es muss die App-ID sein, etwa org.example.Notes",
        "it has to be {1}": "es muss {1} sein",
        "it has too many different names": "sie hat zu viele verschiedene Namen",
        "it has too many names, and constraints on names, to compare":
            "es enthält zu viele Namen und Namensbeschränkungen zum Vergleichen",
        "it has too many namespaces": "sie hat zu viele Namensräume",
        "it has {1} strings; the most are {2}": "es sind {1} Zeichenketten; erlaubt sind höchstens {2}",
        "it is cut off": "sie ist abgeschnitten",
        "it is for another name": "es gilt für einen anderen Namen",
        "it is longer than that of any account": "sie ist länger als die jedes Kontos",
        "it is not XML ({1})": "sie ist kein XML ({1})",
        "it is not a dictionary": "es ist kein Dictionary",
        "it is not an XML or binary property list": "es ist weder eine XML- noch eine binäre Property-Liste",
        "it is not an XML or binary property list: {1}": "es ist weder eine XML- noch eine binäre Property-Liste: {1}",
        "it is too long": "sie ist zu lang",
        "it is too much at once": "es ist zu viel auf einmal",
        "it lacks a required feature: {1}": "eine nötige Funktion fehlt: {1}",
        "it must begin with {1}": "sie muss mit {1} beginnen",
        "it must not contain a query or a fragment; write %3F and %23 in a name":
            "sie darf keine Abfrage (?) und kein Fragment (#) enthalten; schreiben Sie in Namen %3F und %23",
        "it must not contain a query or a fragment; write %3F and %23 in a prefix":
            "sie darf keine Abfrage (?) und kein Fragment (#) enthalten; schreiben Sie in Präfixen %3F und %23",
        "it must not name more than {1} members": "sie darf höchstens {1} Mitglieder nennen",
        "it must say where in the cluster the account is, as in etcds://HOST/settings/ada":
            "sie muss angeben, wo im Cluster das Konto liegt, wie in etcds://HOST/settings/ada",
        "it names too many stores": "sie nennt zu viele Speicher",
        "it requires a client certificate, which this service doesn't support":
            "ein Client-Zertifikat wird verlangt, und das unterstützt dieser Dienst nicht",
        "it says something else than its name": "sie sagt etwas anderes als ihr Name",
        "it supports none of the methods that this device offers, or {1}":
            "keines der Verfahren, die dieses Gerät anbietet, wird dort unterstützt, oder {1}",
        "it was not sealed with the account's key, or was altered since":
            "sie wurde nicht mit dem Schlüssel des Kontos verschlüsselt oder seither verändert",
        "its content is not what its header says": "ihr Inhalt ist nicht das, was ihre Kopfdaten angeben",
        "its content is too long": "ihr Inhalt ist zu lang",
        "its elements are nested too deep": "ihre Elemente sind zu tief verschachtelt",
        "its file was replaced or removed while it was open":
            "ihre Datei wurde ersetzt oder entfernt, während sie geöffnet war",
        "its path must not be longer than 2047 bytes": "ihr Pfad darf höchstens 2047 Bytes lang sein",
        "its path must not contain . or ..": "ihr Pfad darf weder . noch .. enthalten",
        "its prefix must not be longer than 512 bytes": "ihr Präfix darf höchstens 512 Bytes lang sein",
        "its salt doesn't match its content": "ihr Salt passt nicht zu ihrem Inhalt",
        "its sum is wrong": "ihre Prüfsumme stimmt nicht",
        "keys are out of order": "Schlüssel sind nicht sortiert",
        "libcurl is needed for this address and can't be used; install libcurl4 ({1}).":
            """
        Für diese Adresse wird libcurl gebraucht, lässt sich aber nicht verwenden; installieren Sie libcurl4 \
        ({1}).
        """,
        "made {1}{2}": "erzeugt: {1}{2}",
        "no padding": "die Auffüllung fehlt",
        "no such origin": "einen solchen Ursprung gibt es nicht",
        "origins are out of order": "Ursprünge sind nicht sortiert",
        "reading a container": "beim Lesen eines Containers",
        "reading a container to its end": "beim Lesen bis zum Ende eines Containers",
        "reading a message": "beim Lesen einer Nachricht",
        "reading a message again": "beim erneuten Lesen einer Nachricht",
        "reading a string": "beim Lesen einer Zeichenkette",
        "reading a type": "beim Lesen eines Typs",
        "reading a value": "beim Lesen eines Werts",
        "reading bytes": "beim Lesen von Bytes",
        "refuses connections: it is down, or the port is wrong":
            "lehnt Verbindungen ab: Er läuft nicht, oder der Port ist falsch",
        "registering an interface": "beim Registrieren einer Schnittstelle",
        "self-signed certificate": "es ist selbst signiert",
        "sending a message": "beim Senden einer Nachricht",
        "skipping a value": "beim Überspringen eines Werts",
        "something other than zeros follows its content": "auf ihren Inhalt folgt etwas anderes als Nullen",
        "stores are out of order": "Speicher sind nicht sortiert",
        "strings": "Zeichenketten",
        "the address of the bus": "bei der Adresse des Busses",
        "the bytes end within a number or before a value": "die Bytes enden in einer Zahl oder vor einem Wert",
        "the database has too many stores": "die Datenbank hat zu viele Speicher",
        "the database was closed": "die Datenbank wurde geschlossen",
        "the declaration is too long": "die Deklaration ist zu lang",
        "the disk is too slow for what is written; try again later":
            "der Datenträger ist zu langsam für das, was geschrieben wird; versuchen Sie es später noch einmal",
        "the key \"{1}\" or its value has the control character U+{2}, which XML can't hold; use binary or JSON":
            """
        der Schlüssel „{1}“ oder sein Wert enthält das Steuerzeichen U+{2}, das XML nicht kennt; verwenden Sie das \
        Binärformat oder JSON
        """,
        "the name has a control character; leave it out":
            "der Name einer Domain enthält ein Steuerzeichen; lassen Sie es weg",
        "the name has a noncharacter; leave it out":
            "der Name einer Domain enthält ein Nichtzeichen; lassen Sie es weg",
        "the name has a slash; leave it out":
            "der Name einer Domain enthält einen Schrägstrich; lassen Sie ihn weg",
        "the name has {1} bytes; shorten it to 255":
            "der Name einer Domain hat {1} Bytes; kürzen Sie ihn auf 255",
        "the name is empty; give it 1 to 255 bytes of UTF-8":
            "der Name einer Domain ist leer; er muss 1 bis 255 Bytes UTF-8 haben",
        "the name of a namespace is too long": "der Name eines Namensraums ist zu lang",
        "the store {1} would be too large with what this device has of it twice":
            "der Speicher {1} würde zu groß mit dem, was dieses Gerät doppelt von ihm hat",
        "the user and the password belong in the options, not in the address":
            "Benutzername und Passwort gehören in die Optionen, nicht in die Adresse",
        "the user's name or the password has control characters in it":
            "der Benutzername oder das Passwort enthält Steuerzeichen",
        "the value is larger than {1} bytes": "der Wert ist größer als {1} Bytes",
        "there are too many entries": "es sind zu viele Einträge",
        "there is no such bucket": "ein solches Bucket gibt es nicht",
        "they are those of the account that is signed in": "es sind die des angemeldeten Kontos",
        "two slashes must follow the colon, as in {1}":
            "auf den Doppelpunkt müssen zwei Schrägstriche folgen, wie in {1}",
        "unable to get local issuer certificate": "das Zertifikat des Ausstellers fehlt auf diesem Gerät",
        "unknown flags": "unbekannte Flags",
        "wants a login: write it in the variable, as http://USER:PASSWORD@HOST":
            "verlangt eine Anmeldung: Geben Sie sie in der Variablen an, als http://BENUTZER:PASSWORT@RECHNER",
        "without a reason": "ohne Angabe eines Grundes",
        "writing a container": "beim Schreiben eines Containers",
        "writing a container to its end": "beim Schreiben bis zum Ende eines Containers",
        "writing a signature": "beim Schreiben einer Signatur",
        "writing a string": "beim Schreiben einer Zeichenkette",
        "writing a value": "beim Schreiben eines Werts",
        "writing an object path": "beim Schreiben eines Objektpfads",
        "writing bytes": "beim Schreiben von Bytes",
        "{1} (made {2})": "{1} (erzeugt: {2})",
        "{1} answered with a web page: log in to the network in a browser, or check whether {2} is a WebDAV address.":
            """
        {1} hat mit einer Webseite geantwortet: Melden Sie sich im Browser beim Netzwerk an, oder prüfen Sie, ob \
        {2} eine WebDAV-Adresse ist.
        """,
        "{1} answers with the unexpected status {2} for {3}.": "{1} antwortet mit dem unerwarteten Status {2} auf {3}.",
        "{1} answers {2}: {3}.": "{1} antwortet mit {2}: {3}.",
        "{1} belongs neither to root nor to the service's user, so accounts can't be kept there. Change its owner.":
            """
        {1} gehört weder root noch dem Benutzer des Dienstes; deshalb sind dort keine Konten möglich. Ändern Sie \
        den Eigentümer.
        """,
        "{1} belongs to another user or is not a file, so it is not used. Unlock the account again.":
            """
        {1} gehört einem anderen Benutzer oder ist keine Datei und wird deshalb nicht verwendet. Entsperren Sie \
        das Konto erneut.
        """,
        "{1} belongs to another user.": "{1} gehört einem anderen Benutzer.",
        "{1} calls are waiting for this account already. Try again later.":
            "Auf dieses Konto warten schon {1} Aufrufe. Versuchen Sie es später noch einmal.",
        "{1} calls of the connection are not answered yet.": "{1} Aufrufe der Verbindung sind noch nicht beantwortet.",
        "{1} can't be made: {2}.": "{1} lässt sich nicht anlegen: {2}.",
        "{1} can't be opened by its user: there are no access control lists here.":
            "{1} lässt sich von seinem Benutzer nicht öffnen: Hier gibt es keine Zugriffssteuerungslisten (ACLs).",
        "{1} can't be removed: {2}.": "{1} lässt sich nicht entfernen: {2}.",
        "{1} can't be used now: {2}.": "{1} lässt sich derzeit nicht verwenden: {2}.",
        "{1} can't be used, because the service's own data is there.":
            "{1} lässt sich nicht verwenden, weil dort die eigenen Daten des Dienstes liegen.",
        "{1} can't be used: accounts may be in {2}{3}, or in a subfolder that doesn't belong to another user.":
            """
        {1} lässt sich nicht verwenden: Konten sind in {2}{3} möglich, oder in einem Unterordner, der keinem \
        anderen Benutzer gehört.
        """,
        "{1} can't be used: the administrator has allowed no folders (FolderRoot=).":
            "{1} lässt sich nicht verwenden: Die Systemverwaltung hat keine Ordner freigegeben (FolderRoot=).",
        """
        {1} can't be used: {2}. The service's user must be able to enter the folders above it, and to read and write it. \
        If it is on another disk, check that the disk is mounted.
        """:
            """
        {1} lässt sich nicht verwenden: {2}. Der Benutzer des Dienstes muss die Ordner darüber betreten und hier lesen \
        und schreiben dürfen. Ist es auf einem anderen Datenträger, prüfen Sie, ob dieser eingehängt ist.
        """,
        "{1} can't be used: {2}.": "{1} lässt sich nicht verwenden: {2}.",
        "{1} can't be written now.": "{1} lässt sich derzeit nicht schreiben.",
        """
        {1} can't be written to: {2}. Its file system may be mounted read-only, or ReadWritePaths= of the service's \
        unit may lack it.
        """:
            """
        In {1} lässt sich nicht schreiben: {2}. Vielleicht ist das Dateisystem schreibgeschützt eingehängt, oder \
        ReadWritePaths= in der Unit des Dienstes nennt den Ordner nicht.
        """,
        "{1} can't be written: {2}.": "{1} lässt sich nicht schreiben: {2}.",
        "{1} denies access to {2}. Give this user read and write permission there.":
            "{1} verweigert den Zugriff auf {2}. Geben Sie diesem Benutzer dort Lese- und Schreibrechte.",
        "{1} did not answer in time.": "{1} hat nicht rechtzeitig geantwortet.",
        "{1} did not answer with HTTP. Check the port.": "{1} hat nicht mit HTTP geantwortet. Prüfen Sie den Port.",
        "{1} doesn't accept this user and password, or this token.":
            "{1} lehnt Benutzername, Passwort oder Token ab.",
        "{1} doesn't accept this user and password.": "{1} lehnt Benutzername oder Passwort ab.",
        "{1} doesn't exist yet; signing in creates it{2}.":
            "{1} gibt es noch nicht; der Ordner wird bei der Anmeldung angelegt{2}.",
        "{1} doesn't exist. If the folder was deleted, create it again.":
            "{1} gibt es nicht. Wurde der Ordner gelöscht, legen Sie ihn wieder an.",
        "{1} doesn't exist; signing in creates it the first time.":
            "{1} gibt es nicht; beim ersten Mal legt die Anmeldung den Ordner an.",
        "{1} exists already.": "{1} gibt es schon.",
        "{1} exists, but is not what was expected: {2}.{3}": "{1} ist vorhanden, aber nicht das Erwartete: {2}.{3}",
        "{1} has TLS: the address must begin with etcds://.":
            "{1} verwendet TLS: Die Adresse muss mit etcds:// beginnen.",
        "{1} has a database of {2} bytes, which is more than DatabaseBytes= allows.":
            "{1} hat eine Datenbank mit {2} Bytes; das ist mehr, als DatabaseBytes= erlaubt.",
        "{1} has a database that this service has not made.":
            "{1} hat eine Datenbank, die nicht von diesem Dienst stammt.",
        "{1} has a database with more in the table {2} than this service writes.":
            "{1} hat eine Datenbank mit mehr in der Tabelle {2}, als dieser Dienst schreibt.",
        "{1} is damaged. Unlock the account again with its recovery phrase.":
            "{1} ist beschädigt. Entsperren Sie das Konto erneut mit seinen Wiederherstellungswörtern.",
        "{1} is empty and on another device than before: is its drive mounted?":
            "{1} ist leer und liegt auf einem anderen Datenträger als zuvor: Ist das Laufwerk eingehängt?",
        "{1} is locked on {2} just now.": "{1} ist auf {2} gerade gesperrt.",
        """
        {1} is not a WebDAV server at {2} just now: it is under maintenance, or this is not a WebDAV address.
        """:
            """
        {1} ist unter {2} derzeit kein WebDAV-Server: Der Server wird gewartet, oder das ist keine WebDAV-Adresse.
        """,
        "{1} is not a WebDAV server at {2}, or is read-only.":
            "{1} ist unter {2} kein WebDAV-Server oder ist schreibgeschützt.",
        "{1} is not an etcd server, or is older than version 3.4.":
            "{1} ist kein etcd-Server oder älter als Version 3.4.",
        "{1} is not the tag of a value": "{1} kennzeichnet keinen Wert",
        "{1} is on another device than a moment ago.": "{1} liegt auf einem anderen Datenträger als eben noch.",
        "{1} is the data of a user of this machine; with 0x1 it is removed anyway.":
            "{1} sind die Daten eines Benutzers dieses Rechners; mit 0x1 werden sie trotzdem entfernt.",
        "{1} is too large for {2}.": "{1} ist zu groß für {2}.",
        "{1} is, or is behind, a symbolic link, and is not followed.":
            "{1} ist ein symbolischer Link oder liegt hinter einem; solchen Links folgt der Dienst nicht.",
        "{1} isn't set aside, and is or may be the data of a user of this machine.":
            "{1} ist nicht beiseitegelegt, und es sind womöglich Daten eines Benutzers dieses Rechners.",
        "{1} lists no folders: it has neither PROPFIND nor an index (for nginx: the module dav-ext, or autoindex).":
            """
        {1} listet keine Ordner auf: Es gibt weder PROPFIND noch einen Index (bei nginx: das Modul dav-ext oder \
        autoindex).
        """,
        "{1} no longer accepts the token.": "{1} nimmt das Token nicht mehr an.",
        """
        {1} redirects to {2}. The service doesn't send credentials there; if that is the right server, sign in with \
        its address.
        """:
            """
        {1} leitet zu {2} weiter. Dorthin sendet der Dienst keine Zugangsdaten; ist das der richtige Server, \
        melden Sie sich mit dessen Adresse an.
        """,
        "{1} redirects too often. The address may have changed.":
            "{1} leitet zu oft weiter. Vielleicht hat sich die Adresse geändert.",
        """
        {1} redirects {2} to a web page: log in to the network in a browser, or check whether this is a WebDAV \
        address.
        """:
            """
        {1} leitet {2} zu einer Webseite weiter: Melden Sie sich im Browser beim Netzwerk an, oder prüfen Sie, \
        ob das eine WebDAV-Adresse ist.
        """,
        "{1} refuses a secure connection: {2}.": "{1} lehnt eine sichere Verbindung ab: {2}.",
        "{1} refuses connections: the server is down, or the port is wrong.":
            "{1} lehnt Verbindungen ab: Der Server läuft nicht, oder der Port ist falsch.",
        "{1} refuses more requests for a while, because there were too many.":
            "{1} nimmt vorübergehend keine Anfragen mehr an, weil es zu viele waren.",
        "{1} reports an error of its own (status {2}).": "{1} meldet einen internen Fehler (Status {2}).",
        "{1} requires a user and a password.": "{1} verlangt Benutzername und Passwort.",
        "{1} requires client certificates, which this service doesn't support.":
            "{1} verlangt Client-Zertifikate, die dieser Dienst nicht unterstützt.",
        "{1} was not created by this service.": "{1} wurde nicht von diesem Dienst angelegt.",
        "{1} was written by a newer version of this service. Install that version.":
            "{1} wurde von einer neueren Version dieses Dienstes geschrieben. Installieren Sie diese Version.",
        "{1}; use {2} or {3}.": "{1}; verwenden Sie {2} oder {3}.",
    ]
}
