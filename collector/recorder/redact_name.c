#include "collector/recorder/redact_name.h"

#include <string.h>

enum { WORD_MAX = 24 }; /* letters kept of a word, its last ones; longer than any in the tables */

struct word {
    char text[WORD_MAX + 1]; /* lower case */
    size_t len;              /* 0: there is none */
};

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_letter(char c)
{
    return is_upper(c) || is_lower(c);
}

/* A new word begins at s[i]: camelCase, or the Key of APIKey. */
static bool begins_word(struct slice s, size_t i)
{
    char c = s.ptr[i];
    char before = s.ptr[i - 1];
    bool next_is_lower = i + 1 < s.len && is_lower(s.ptr[i + 1]);

    return is_upper(c) && (is_lower(before) || (is_upper(before) && next_is_lower));
}

/* The first word of *rest, which moves behind it. */
static struct word take_word(struct slice *rest)
{
    struct slice s = *rest;
    struct word w = { .len = 0 };
    size_t first = 0;
    size_t end;

    while (first < s.len && !is_letter(s.ptr[first])) {
        first++;
    }
    for (end = first; end < s.len && is_letter(s.ptr[end]); end++) {
        if (end > first && begins_word(s, end)) {
            break;
        }
    }
    *rest = (struct slice){ .ptr = s.ptr + end, .len = s.len - end };
    if (end - first > WORD_MAX) {
        first = end - WORD_MAX;
    }
    for (; first < end; first++) {
        w.text[w.len++] = (char)(s.ptr[first] | 0x20);
    }
    w.text[w.len] = '\0';
    return w;
}

/* True when w is one of the words in `list`, which are parted by blanks. */
static bool is_one_of(const struct word *w, const char *list)
{
    const char *at = w->len > 0 ? list : "";

    while (*at != '\0') {
        size_t n = strcspn(at, " ");

        if (n == w->len && memcmp(at, w->text, n) == 0) {
            return true;
        }
        at += n + (at[n] == ' ' ? 1 : 0);
    }
    return false;
}

static bool ends_with(const struct word *w, const char *end, size_t len)
{
    return w->len >= len && memcmp(w->text + w->len - len, end, len) == 0;
}

#define ACCOUNTS "db database user root admin smtp mail ftp redis mysql pg postgres sql proxy"
#define KEYS                                                                                   \
    "api private access secret account shared signing signature encryption decryption master " \
    "ssh deploy service client auth crypt hmac"

/*
 * What a secret is called. `before`: only behind one of these words. Long words
 * count as the end of a longer one, too: dbpassword, authtoken.
 */
static const struct {
    const char *word;
    const char *before;
} secrets[] = {
    { "password", NULL },
    { "passwords", NULL },
    { "passwd", NULL },
    { "passphrase", NULL },
    { "secret", NULL },
    { "secrets", NULL },
    { "token", NULL },
    { "tokens", "access refresh auth api bearer session" },
    { "authorization", NULL },
    { "cookie", NULL },
    { "cookies", NULL },
    { "credential", NULL },
    { "credentials", NULL },
    { "creds", NULL },
    { "jwt", NULL },
    { "otp", NULL },
    { "key", KEYS },
    { "keys", KEYS },
    { "apikey", NULL },
    { "apikeys", NULL },
    { "privatekey", NULL },
    { "accesskey", NULL },
    { "secretkey", NULL },
    { "accountkey", NULL },
    { "string", "connection conn" },
    { "strings", "connection conn" },
    { "connectionstring", NULL },
    { "pass", ACCOUNTS },
    { "pwd", ACCOUNTS },
    { "signature", "access amz" },
};

enum { LONG_WORD = 5 }; /* letters from which on the end of a word is enough: authtoken */

/* Before `token`, these make it a piece of text and no secret. */
static const char *const text_tokens =
    "max min num total eos bos pad unk mask sep cls stop special count prompt completion";

/* Behind a secret's word, these make the name one that only speaks of it. */
static const char *const harmless =
    "count counts limit limits budget usage used length len size type types name names policy "
    "policies ttl expiry expires expiration expire lifetime age file filename path paths dir "
    "url uri endpoint endpoints id ids required enabled disabled valid validation status "
    "rotation field fields label min max per rate at scope scopes index position arn ref refs "
    "version consent banner manager store provider format algorithm algo method mode stdin";

static bool is_secret_word(const struct word *w, const struct word *before)
{
    for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++) {
        const char *word = secrets[i].word;
        size_t len = strlen(word);

        if (!ends_with(w, word, len)) {
            continue;
        }
        if (secrets[i].before) {
            if (w->len == len && is_one_of(before, secrets[i].before)) {
                return true;
            }
        } else if (w->len == len || len >= LONG_WORD) {
            return !(is_one_of(w, "token") && is_one_of(before, text_tokens));
        }
    }
    return false;
}

bool redact_is_secret_name(struct slice name)
{
    struct word before = { .len = 0 };
    bool secret = false;

    for (;;) {
        struct word w = take_word(&name);

        if (w.len == 0) {
            return secret;
        }
        if (is_secret_word(&w, &before)) {
            secret = true;
        } else if (secret && is_one_of(&w, harmless)) {
            /* A secret_id is one half of a login, unlike the id of a key or a token. */
            secret = is_one_of(&w, "id") && is_one_of(&before, "secret");
        }
        before = w;
    }
}
