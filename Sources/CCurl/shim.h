// SPDX-License-Identifier: Apache-2.0
#ifndef CCURL_SHIM_H
#define CCURL_SHIM_H

// For the declarations only: the library is loaded when an account needs it (Curl.swift), and never linked.
#include <curl/curl.h>

// Swift can't call variadic functions, nor name the type of a pointer to one. `function` is what dlsym(3) has found.

static inline CURLcode shim_easy_set_number(void *function, CURL *easy, CURLoption option, long value) {
    return ((CURLcode (*)(CURL *, CURLoption, ...)) function)(easy, option, value);
}

static inline CURLcode shim_easy_set_size(void *function, CURL *easy, CURLoption option, curl_off_t value) {
    return ((CURLcode (*)(CURL *, CURLoption, ...)) function)(easy, option, value);
}

static inline CURLcode shim_easy_set_text(void *function, CURL *easy, CURLoption option, const char *value) {
    return ((CURLcode (*)(CURL *, CURLoption, ...)) function)(easy, option, value);
}

static inline CURLcode shim_easy_set_pointer(void *function, CURL *easy, CURLoption option, const void *value) {
    return ((CURLcode (*)(CURL *, CURLoption, ...)) function)(easy, option, value);
}

typedef size_t (*shim_data_callback)(char *data, size_t size, size_t count, void *userdata);

static inline CURLcode shim_easy_set_data_callback(
    void *function, CURL *easy, CURLoption option, shim_data_callback value) {
    return ((CURLcode (*)(CURL *, CURLoption, ...)) function)(easy, option, value);
}

static inline CURLcode shim_easy_set_debug_callback(void *function, CURL *easy, curl_debug_callback value) {
    return ((CURLcode (*)(CURL *, CURLoption, ...)) function)(easy, CURLOPT_DEBUGFUNCTION, value);
}

static inline CURLcode shim_easy_set_tls_callback(void *function, CURL *easy, curl_ssl_ctx_callback value) {
    return ((CURLcode (*)(CURL *, CURLoption, ...)) function)(easy, CURLOPT_SSL_CTX_FUNCTION, value);
}

static inline CURLcode shim_easy_set_progress_callback(void *function, CURL *easy, curl_xferinfo_callback value) {
    return ((CURLcode (*)(CURL *, CURLoption, ...)) function)(easy, CURLOPT_XFERINFOFUNCTION, value);
}

static inline CURLcode shim_easy_get_number(void *function, CURL *easy, CURLINFO info, long *value) {
    return ((CURLcode (*)(CURL *, CURLINFO, ...)) function)(easy, info, value);
}

static inline CURLcode shim_easy_get_size(void *function, CURL *easy, CURLINFO info, curl_off_t *value) {
    return ((CURLcode (*)(CURL *, CURLINFO, ...)) function)(easy, info, value);
}

static inline CURLMcode shim_multi_set_number(void *function, CURLM *multi, CURLMoption option, long value) {
    return ((CURLMcode (*)(CURLM *, CURLMoption, ...)) function)(multi, option, value);
}

static inline CURLMcode shim_multi_set_pointer(void *function, CURLM *multi, CURLMoption option, void *value) {
    return ((CURLMcode (*)(CURLM *, CURLMoption, ...)) function)(multi, option, value);
}

static inline CURLMcode shim_multi_set_callbacks(
    void *function, CURLM *multi, curl_socket_callback socket, curl_multi_timer_callback timer) {
    CURLMcode (*set)(CURLM *, CURLMoption, ...) = (CURLMcode (*)(CURLM *, CURLMoption, ...)) function;
    CURLMcode code = set(multi, CURLMOPT_SOCKETFUNCTION, socket);
    return code != CURLM_OK ? code : set(multi, CURLMOPT_TIMERFUNCTION, timer);
}

// Functions of OpenSSL, whose headers aren't needed for that. The types are X509_STORE_CTX, X509, X509_STORE, stacks of
// certificates or objects in a store, SSL, and BIO.
// All from `set_verification` to `length` are there or none is, and all from `set_observation` on.
struct shim_tls {
    void (*set_depth)(void *context, int depth);
    long (*control)(void *context, int command, long number, void *pointer);
    void (*set_verification)(void *context, int (*function)(void *, void *), void *argument);
    int (*verify)(void *verification);
    void (*set_error)(void *verification, int error);
    void *(*sent)(void *verification);
    void *(*store)(void *verification);
    void *(*objects)(void *store);
    void *(*certificate)(void *object);
    int (*count)(void *stack);
    void *(*element)(void *stack, int index);
    int (*size)(void *certificate, unsigned char **output);
    int (*find)(void *certificate, int extension, int after);
    void *(*extension)(void *certificate, int index);
    void *(*data)(void *extension);
    int (*length)(void *data);
    void (*set_observation)(void *context, void (*function)(const void *, int, int));
    void (*set_messages)(void *context, void (*function)(int, int, int, const void *, size_t, void *, void *));
    void *(*input)(const void *connection);
    void (*set_watch)(void *input, long (*function)(void *, int, const char *, size_t, int, long, int, size_t *));
    void (*set_note)(void *input, char *note);
    char *(*note)(const void *input);
};

// The bytes of all extensions of a certificate that have an identifier of OpenSSL.
static inline long shim_extension_bytes(const struct shim_tls *tls, void *certificate, int identifier) {
    long bytes = 0;
    for (int index = -1; certificate && (index = tls->find(certificate, identifier, index)) >= 0;) {
        bytes += tls->length(tls->data(tls->extension(certificate, index)));
    }
    return bytes;
}

// The bytes of a certificate's name constraints.
static inline long shim_constraints(const struct shim_tls *tls, void *certificate) {
    return shim_extension_bytes(tls, certificate, 666 /* NID_name_constraints */);
}

// The most product of the bytes of the certificates that a server sends and of the bytes of all name constraints.
// OpenSSL compares each name in a certificate with each constraint above it, in up to 2.4 us, if both have over 14 and
// 130 bytes. Eight kilobytes of certificates and four of constraints are far more than usual.
static const long shim_most_comparisons = 32l << 20;

// The most product of the bytes of the certificates that a server sends and of their CRL distribution points. OpenSSL
// copies the issuer's name for each point that is relative to it: 29 KB would take 9 s and 600 MB.
static const long shim_most_copies = 2l << 20;

// X509_V_ERR_APPLICATION_VERIFICATION
static const long shim_too_costly = 50;

// Verifies a server's certificates, unless that takes long: then it fails with `shim_too_costly`.
static int shim_verify(void *verification, void *functions) {
    const struct shim_tls *tls = functions;
    long bytes = 0, constraints = 0, points = 0;
    void *sent = tls->sent(verification);
    for (int index = 0, count = sent ? tls->count(sent) : 0; index < count; index++) {
        void *certificate = tls->element(sent, index);
        bytes += tls->size(certificate, NULL);
        constraints += shim_constraints(tls, certificate);
        points += shim_extension_bytes(tls, certificate, 103 /* NID_crl_distribution_points */);
    }
    void *objects = tls->objects(tls->store(verification));
    for (int index = 0, count = objects ? tls->count(objects) : 0; index < count; index++) {
        constraints += shim_constraints(tls, tls->certificate(tls->element(objects, index)));
    }
    if ((constraints > 0 && bytes > shim_most_comparisons / constraints) ||
        (points > 0 && bytes > shim_most_copies / points)) {
        tls->set_error(verification, (int) shim_too_costly);
        return 0;
    }
    return tls->verify(verification);
}

// The functions, for callbacks that have no argument of their own. A variable of the file would not be defined in Swift.
static const struct shim_tls *shim_functions(const struct shim_tls *found) {
    static const struct shim_tls *functions;
    return functions = found ? found : functions;
}

// The most bytes that a server sends in a handshake. They are a few thousand more than its certificates.
static const size_t shim_most_handshake_bytes = 128 << 10;

// Counts what is read, and fails once it is too much. The count is the number that the BIO keeps for its user.
static long shim_watch(
    void *input, int operation, const char *data, size_t size, int unused, long unused_too, int result, size_t *read) {
    const struct shim_tls *tls = shim_functions(NULL);
    size_t count = (size_t) tls->note(input);
    if (operation == 0x02 /* BIO_CB_READ */) return count <= shim_most_handshake_bytes;
    if (operation == (0x02 | 0x80 /* BIO_CB_RETURN */) && result > 0 && read) {
        tls->set_note(input, (char *) (count + *read));
    }
    return result;
}

// Watches a connection's input during a handshake.
static void shim_observe(const void *connection, int event, int unused) {
    const struct shim_tls *tls = shim_functions(NULL);
    void *input = event & (0x10 | 0x20) ? tls->input(connection) : NULL;
    if (!input) return;
    int begins = event & 0x10 /* SSL_CB_HANDSHAKE_START */;
    if (begins) tls->set_note(input, NULL);
    tls->set_watch(input, begins ? shim_watch : NULL);
}

// Has OpenSSL refuse a server's certificates, before it reads them, if one may have a key on an elliptic curve of the
// server's own: OpenSSL would compute its points, for half a second per certificate. A Certificate message (11) whose
// fifth byte, a part of its length, is changed has the wrong length. 1.2.840.10045.1, the type of a field, is only in
// descriptions of curves (RFC 3279, 2.3.5); curves with names have none.
static void shim_look(
    int is_sent, int version, int type, const void *message, size_t size, void *connection, void *unused) {
    static const unsigned char field[] = { 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x01 };
    const unsigned char *bytes = message;
    if (is_sent || type != 22 /* SSL3_RT_HANDSHAKE */ || size < 5 || bytes[0] != 11) return;
    for (size_t start = 5; start + sizeof field <= size; start++) {
        size_t same = 0;
        while (same < sizeof field && bytes[start + same] == field[same]) same++;
        if (same < sizeof field) continue;
        ((unsigned char *) bytes)[4] = 0xff;
        return;
    }
}

// Bounds what a server's certificates cost: their number and size by SSL_CTRL_SET_MAX_CERT_LIST (51), and the comparisons
// of names. Bounds what the server sends before the handshake is over. Has OpenSSL return after each record that follows:
// clears SSL_MODE_AUTO_RETRY (4) by SSL_CTRL_CLEAR_MODE (78), and reading ahead, which needs it, by
// SSL_CTRL_SET_READ_AHEAD (41).
static inline void shim_tls_bound(void *context, void *functions, int depth, long size) {
    const struct shim_tls *tls = shim_functions(functions);
    tls->set_depth(context, depth);
    tls->control(context, 51, size, NULL);
    if (tls->set_verification) tls->set_verification(context, shim_verify, functions);
    if (tls->set_observation) {
        tls->set_observation(context, shim_observe);
        tls->set_messages(context, shim_look);
    }
    tls->control(context, 78, 4, NULL);
    tls->control(context, 41, 0, NULL);
}

// The result of a transfer, which is in a union.
static inline CURLcode shim_message_result(const CURLMsg *message) { return message->data.result; }

// Macros with casts, which Swift does not import.
static const long shim_auth_basic = (long) CURLAUTH_BASIC;
static const long shim_auth_digest = (long) CURLAUTH_DIGEST;
static const long shim_auth_none = (long) CURLAUTH_NONE;
static const long shim_http_1_1 = (long) CURL_HTTP_VERSION_1_1;
static const long shim_global_default = (long) CURL_GLOBAL_DEFAULT;
static const long shim_tls_1_2 = (long) CURL_SSLVERSION_TLSv1_2;

#endif
