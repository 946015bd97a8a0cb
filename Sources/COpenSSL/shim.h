#ifndef NIGHTJAR_COPENSSL_SHIM_H
#define NIGHTJAR_COPENSSL_SHIM_H

// Nothing that OpenSSL 3 calls deprecated.
#define OPENSSL_API_COMPAT 30000
#define OPENSSL_NO_DEPRECATED
#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/auxv.h>
#include <sys/time.h>

_Static_assert(OPENSSL_VERSION_MAJOR == 3, "OpenSSL 3");

// Macros of OpenSSL as functions.

static inline int nightjar_ctx_set_minimum_version(SSL_CTX *context, int version) {
  return SSL_CTX_set_min_proto_version(context, version);
}

static inline long nightjar_ctx_set_mode(SSL_CTX *context, long mode) { return SSL_CTX_set_mode(context, mode); }

static inline long nightjar_ctx_disable_session_cache(SSL_CTX *context) {
  return SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
}

static inline long nightjar_ctx_set_groups(SSL_CTX *context, const char *groups) {
  return SSL_CTX_set1_groups_list(context, groups);
}

static inline long nightjar_ctx_add_chain_certificate(SSL_CTX *context, X509 *certificate) {
  return SSL_CTX_add1_chain_cert(context, certificate);
}

static inline long nightjar_ssl_set_mtu(SSL *ssl, long bytes) { return SSL_set_mtu(ssl, bytes); }

/// Names of the certificate's extension alone (RFC 9525 section 6.3), and no wildcard within a label.
static inline void nightjar_ssl_check_names_strictly(SSL *ssl) {
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
}

static inline long nightjar_ssl_set_server_name(SSL *ssl, const char *name) { return SSL_set_tlsext_host_name(ssl, name); }

static inline long nightjar_dtls_get_timeout(SSL *ssl, struct timeval *time) { return DTLSv1_get_timeout(ssl, time); }

static inline long nightjar_dtls_handle_timeout(SSL *ssl) { return DTLSv1_handle_timeout(ssl); }

static inline void nightjar_bio_clear_retry(BIO *bio) { BIO_clear_retry_flags(bio); }

static inline void nightjar_bio_set_retry_read(BIO *bio) { BIO_set_retry_read(bio); }

// Options are 64 bits wide by a cast, which Swift does not see.
static const uint64_t nightjar_op_no_renegotiation = SSL_OP_NO_RENEGOTIATION;
static const uint64_t nightjar_op_no_compression = SSL_OP_NO_COMPRESSION;
static const uint64_t nightjar_op_server_preference = SSL_OP_CIPHER_SERVER_PREFERENCE;
static const uint64_t nightjar_op_prioritize_chacha = SSL_OP_PRIORITIZE_CHACHA;
static const uint64_t nightjar_op_no_ticket = SSL_OP_NO_TICKET;
static const uint64_t nightjar_op_no_query_mtu = SSL_OP_NO_QUERY_MTU;

static inline EVP_PKEY *nightjar_generate_p256(void) { return EVP_EC_gen("P-256"); }

// Returns the public key of an uncompressed point on P-256; NULL for one that is not on the curve.
static inline EVP_PKEY *nightjar_p256_public_key(const unsigned char *point, size_t count) {
  OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, (char *)"P-256", 0),
      OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, (void *)point, count), OSSL_PARAM_construct_end()};
  EVP_PKEY *key = NULL;
  EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
  if (context != NULL && EVP_PKEY_fromdata_init(context) == 1)
    EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, parameters);
  EVP_PKEY_CTX_free(context);
  return key;
}

static inline int nightjar_gcm_get_tag(EVP_CIPHER_CTX *context, int count, unsigned char *tag) {
  return EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, count, tag);
}

static inline BIO *nightjar_memory_bio(void) { return BIO_new(BIO_s_mem()); }

static inline long nightjar_memory_bio_contents(BIO *bio, char **contents) { return BIO_get_mem_data(bio, contents); }

static inline X509V3_CTX nightjar_extension_context(X509 *issuer, X509 *certificate) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
  return context;
}

static inline int nightjar_general_names_push(GENERAL_NAMES *names, GENERAL_NAME *name) {
  return sk_GENERAL_NAME_push(names, name);
}

// The two parts of an error code.
static inline int nightjar_is_reason(unsigned long error, int library, int reason) {
  return ERR_GET_LIB(error) == library && ERR_GET_REASON(error) == reason;
}

// Returns 1 if the processor has AES instructions. Without them, ChaCha20 is several times as fast.
static inline int nightjar_has_aes(void) {
#if defined(__x86_64__) || defined(__i386__)
  return __builtin_cpu_supports("aes") != 0;
#elif defined(__aarch64__)
  return (getauxval(AT_HWCAP) & (1 << 3)) != 0; // HWCAP_AES of <asm/hwcap.h>
#else
  return 0;
#endif
}

#endif
