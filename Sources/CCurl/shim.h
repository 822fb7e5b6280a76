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

// Functions of OpenSSL, whose headers aren't needed for that.
struct shim_tls {
    void *set_depth;
    void *control;
};

// Bounds the length of a server's chain of certificates, and has OpenSSL return after each record: clears
// SSL_MODE_AUTO_RETRY (4) by SSL_CTRL_CLEAR_MODE (78), and reading ahead, which needs it, by SSL_CTRL_SET_READ_AHEAD (41).
static inline void shim_tls_bound(void *context, const void *functions, int depth) {
    const struct shim_tls *tls = functions;
    ((void (*)(void *, int)) tls->set_depth)(context, depth);
    ((long (*)(void *, int, long, void *)) tls->control)(context, 78, 4, NULL);
    ((long (*)(void *, int, long, void *)) tls->control)(context, 41, 0, NULL);
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
