/* Tokens that a maker marks by their first letters. */
#include <string.h>

#include "collector/recorder/redact_part.h"

#define DIGITS "0123456789"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ" DIGITS
#define HEX "abcdefABCDEF" DIGITS
#define ALNUM "abcdefghijklmnopqrstuvwxyz" UPPER
#define BASE64URL ALNUM "_-"
#define DOTTED BASE64URL ".~"

static const struct {
    const char *start;
    const char *set; /* of the letters that follow */
    size_t least;    /* how many of them make it a token */
} tokens[] = {
    { "AKIA", UPPER, 16 },
    { "ASIA", UPPER, 16 }, /* AWS */
    { "AIza", BASE64URL, 35 },
    { "ya29.", DOTTED, 20 }, /* Google */
    { "ghp_", ALNUM, 30 },
    { "gho_", ALNUM, 30 }, /* GitHub */
    { "ghu_", ALNUM, 30 },
    { "ghs_", ALNUM, 30 }, /* GitHub */
    { "ghr_", ALNUM, 30 },
    { "github_pat_", BASE64URL, 22 },
    { "glpat-", BASE64URL, 20 },
    { "glsa_", BASE64URL, 20 }, /* GitLab, Grafana */
    { "xoxa-", BASE64URL, 10 },
    { "xoxb-", BASE64URL, 10 }, /* Slack */
    { "xoxe-", BASE64URL, 10 },
    { "xoxp-", BASE64URL, 10 }, /* Slack */
    { "xoxr-", BASE64URL, 10 },
    { "xoxs-", BASE64URL, 10 }, /* Slack */
    { "xapp-", BASE64URL, 10 },
    { "whsec_", ALNUM, 16 }, /* Slack, Stripe */
    { "sk_live_", ALNUM, 16 },
    { "sk_test_", ALNUM, 16 }, /* Stripe */
    { "rk_live_", ALNUM, 16 },
    { "rk_test_", ALNUM, 16 }, /* Stripe */
    { "sk-ant-", BASE64URL, 20 },
    { "sk-proj-", BASE64URL, 20 },
    { "sk-", ALNUM, 32 },
    { "npm_", ALNUM, 30 },
    { "pypi-", BASE64URL, 32 },
    { "SG.", DOTTED, 40 }, /* PyPI, SendGrid */
    { "hf_", ALNUM, 30 },
    { "dop_v1_", HEX, 40 }, /* Hugging Face, DigitalOcean */
    { "dckr_pat_", BASE64URL, 20 },
    { "dapi", HEX, 32 }, /* Docker, Databricks */
    { "shpat_", HEX, 32 },
    { "shpss_", HEX, 32 }, /* Shopify */
    { "sq0atp-", BASE64URL, 20 },
    { "sq0csp-", BASE64URL, 20 }, /* Square */
    { "hvs.", BASE64URL, 20 },
    { "hvb.", BASE64URL, 20 }, /* Vault */
    { "AGE-SECRET-KEY-1", UPPER, 40 },
};

static bool find_marked(struct slice text, size_t from, struct span *ret)
{
    struct slice rest = redact_from(text, from);

    for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
        if (tokens[i].start[0] != rest.ptr[0] ||
            !slice_starts_with(rest, slice_from_cstr(tokens[i].start))) {
            continue;
        }

        size_t first = from + strlen(tokens[i].start);
        size_t to = redact_span(text, first, tokens[i].set);

        if (to - first >= tokens[i].least) {
            *ret = (struct span){ .from = from, .to = to };
            return true;
        }
    }
    return false;
}

/* Three parts in base64url; the first is a JSON object, which begins with `{"`. */
static bool find_jwt(struct slice text, size_t from, struct span *ret)
{
    enum { HEAD_LEAST = 12, BODY_LEAST = 4 };

    if (!slice_starts_with(redact_from(text, from), SLICE("eyJ"))) {
        return false;
    }

    size_t dot = redact_span(text, from, BASE64URL);

    if (dot - from < HEAD_LEAST || redact_at(text, dot) != '.') {
        return false;
    }

    size_t second = redact_span(text, dot + 1, BASE64URL);

    if (second - dot < BODY_LEAST || redact_at(text, second) != '.') {
        return false;
    }
    *ret = (struct span){ .from = from, .to = redact_span(text, second + 1, BASE64URL ".") };
    return true;
}

/* The secret of an Azure application: three letters, a digit, `Q~`, and 31 or more. */
static bool find_azure(struct slice text, size_t from, struct span *ret)
{
    enum { MARK = 4, TAIL_LEAST = 31 };

    if (redact_at(text, from + MARK) != 'Q' || redact_at(text, from + MARK + 1) != '~') {
        return false;
    }
    *ret = (struct span){ .from = from, .to = redact_span(text, from, DOTTED) };
    return ret->to >= from + MARK + 2 + TAIL_LEAST;
}

/* Which letters a token can begin with. */
static bool may_begin(char c)
{
    return c != '\0' && strchr("ASadeghnprswxy", c) != NULL;
}

/* The two that have no end of their own are looked for at the run's start alone. */
bool redact_find_token(struct slice text, const struct run *r, struct span *ret)
{
    if (find_jwt(text, r->name, ret) || find_azure(text, r->name, ret)) {
        return true;
    }
    for (size_t i = r->name; i < r->to; i++) {
        bool begins = i == r->name || text.ptr[i - 1] == '_' || text.ptr[i - 1] == '-';

        if (!begins) {
            continue;
        }
        if (may_begin(text.ptr[i]) && find_marked(text, i, ret)) {
            return true;
        }
    }
    return false;
}
