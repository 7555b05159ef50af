#include "collector/recorder/redact.h"

#include <string.h>

#include "collector/recorder/redact_name.h"
#include "tests/unit/unit.h"

#define R "[redacted]"

/* Tokens are put together here, so that no scanner takes this file for a leak. */
#define AWS \
    "AK"    \
    "IAIOSFODNN7EXAMPLE"
#define GITHUB \
    "gh"       \
    "p_abcdefghijklmnopqrstuvwxyz0123456789"
#define JWT \
    "ey"    \
    "JhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"

static void assert_secret_names(const char *const *names, size_t n, bool are_secret)
{
    for (size_t i = 0; i < n; i++) {
        if (redact_is_secret_name(slice_from_cstr(names[i])) != are_secret) {
            fail_msg("%s: %s", are_secret ? "not known" : "taken for a secret", names[i]);
        }
    }
}

static void names_of_secrets_are_known_in_any_spelling(void **state)
{
    (void)state;
    static const char *const names[] = {
        "password",
        "Password",
        "PASSWORD",
        "passwd",
        "db_password",
        "DB_PASSWORD",
        "dbPassword",
        "dbpassword",
        "password2",
        "user-password",
        "secret",
        "secrets",
        "clientSecret",
        "client_secret",
        "CLIENT-SECRET",
        "clientsecret",
        "token",
        "access_token",
        "accessToken",
        "authtoken",
        "X-Auth-Token",
        "GITHUB_TOKEN",
        "id_token",
        "refreshTokens",
        "access_tokens",
        "apiKey",
        "api_key",
        "APIKey",
        "apikey",
        "x-api-key",
        "api.key",
        "API_KEYS",
        "OPENAI_API_KEY",
        "authorization",
        "Authorization",
        "Proxy-Authorization",
        "cookie",
        "Set-Cookie",
        "cookies",
        "credential",
        "credentials",
        "aws_credentials",
        "private_key",
        "privateKey",
        "PrivateKeyPem",
        "privatekey",
        "ssh_key",
        "AWS_SECRET_ACCESS_KEY",
        "accountKey",
        "SharedAccessKey",
        "signing_key",
        "connection_string",
        "ConnectionString",
        "connectionString",
        "passphrase",
        "DB_PASS",
        "smtp_pwd",
        "jwt",
        "otp",
        "secret_id",
        "password_hash",
        "X-Amz-Signature",
        "webhook_secret",
        "oauth2_token",
        "secretValue",
        "spring.datasource.password",
    };

    assert_secret_names(names, COUNT_OF(names), true);
}

static void names_that_only_speak_of_secrets_are_left(void **state)
{
    (void)state;
    static const char *const names[] = {
        "",
        "a",
        "name",
        "key",
        "keys",
        "value",
        "user",
        "author",
        "authorized",
        "authentication",
        "max_tokens",
        "maxTokens",
        "tokens",
        "input_tokens",
        "token_count",
        "tokenCount",
        "total_tokens",
        "max_token",
        "num_token",
        "eos_token",
        "bos_token",
        "tokenizer",
        "tokenization",
        "token_type",
        "tokens_per_second",
        "token_limit",
        "token_usage",
        "secret_name",
        "secretName",
        "secretKeyRef",
        "password_policy",
        "passwordPolicy",
        "password_length",
        "password_required",
        "cookie_consent",
        "cookieBanner",
        "credential_type",
        "token_url",
        "authorization_endpoint",
        "access_key_id",
        "key_id",
        "public_key",
        "primary_key",
        "foreign_key",
        "sort_keys",
        "keyboard",
        "passed",
        "pass",
        "pwd",
        "passenger",
        "compass",
        "secretary",
        "cookiecutter",
        "string",
        "connection",
        "signature",
        "bypass",
        "monkey",
        "session_id",
        "thread_id",
        "---",
        "123",
    };

    assert_secret_names(names, COUNT_OF(names), false);
}

/* A text, what becomes of it, and how many secrets are gone from it. */
struct redaction {
    const char *text;
    const char *expected;
    uint32_t erased;
};

static struct slice redacted(const char *text, struct arena *a, uint32_t *erased)
{
    struct slice s = slice_from_cstr(text);

    assert_true(redact_text(s, a, &s, erased));
    return s;
}

static void secrets_in_a_text_are_replaced(void **state)
{
    (void)state;
    static const struct redaction cases[] = {
        /* Tokens by their shape. */
        { AWS, R, 1 },
        { "key " AWS ".", "key " R ".", 1 },
        { "x=" AWS "&y", "x=" R "&y", 1 },
        { GITHUB " and " GITHUB, R " and " R, 2 },
        { "deploy_" GITHUB, "deploy_" R, 1 },
        { "gith"
          "ub_pat_11ABCDEFG0abcdefghijklmn_opqrst",
          R, 1 },
        { "xo"
          "xb-123456789012-abcdefABCDEF",
          R, 1 },
        { "sk"
          "_live_abcdefghijklmnop1234",
          R, 1 },
        { "sk"
          "-ant-api03-abcdefghijklmnopqrstuv",
          R, 1 },
        { "np"
          "m_abcdefghijklmnopqrstuvwxyz0123456789",
          R, 1 },
        { "AI"
          "zaSyA1234567890abcdefghijklmnopqrstuvw",
          R, 1 },
        { "ya"
          "29.a0AfH6SMBabcdefghijklmnop",
          R, 1 },
        { "gl"
          "pat-abcdefghij1234567890",
          R, 1 },
        { "(" JWT ")", "(" R ")", 1 },
        { "abc8Q"
          "~dEfGhIjKlMnOpQrStUvWxYz0123456789-_",
          R, 1 },
        { "S"
          "G.abcdefghijklmnopqrstuv.abcdefghijklmnopqrstuvwxyz",
          R, 1 },
        /* Private keys. */
        { "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc=\n-----END RSA PRIVATE KEY-----\nb",
          "a\n" R "\nb", 1 },
        { "-----BEGIN PRIVATE KEY-----\nMIIE\nno end", R, 1 },
        { "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n-----END OPENSSH PRIVATE KEY-----", R, 1 },
        /* Addresses. */
        { "postgres://app:hunter2@db:5432/x", "postgres://app:" R "@db:5432/x", 1 },
        { "see https://u:p%40ss@h/?q=a@b", "see https://u:" R "@h/?q=a@b", 1 },
        { "amqp://u:a@b@h", "amqp://u:" R "@h", 1 },
        { "redis://:pw12@h", "redis://:" R "@h", 1 },
        { "https://" GITHUB "@github.com/a", "https://" R "@github.com/a", 1 },
        /* Headers. */
        { "Authorization: Bearer abc123def", "Authorization: " R, 1 },
        { "curl -H 'Authorization: Basic dXNlcjpwYXNz' https://h",
          "curl -H 'Authorization: " R "' https://h", 1 },
        { "curl -H \"X-Api-Key: k123\" h", "curl -H \"X-Api-Key: " R "\" h", 1 },
        { "Cookie: a=b; c=d\nHost: h", "Cookie: " R "\nHost: h", 1 },
        { "use bearer abc123def456 now", "use bearer " R " now", 1 },
        { "Basic dXNlcjpwYXNzd29yZA==", "Basic " R, 1 },
        /* Options. */
        { "mysql --password hunter2 db", "mysql --password " R " db", 1 },
        { "mysql --password=hunter2 db", "mysql --password=" R " db", 1 },
        { "tool --api-key 'a b c' x", "tool --api-key '" R "' x", 1 },
        { "tool -token abc x", "tool -token " R " x", 1 },
        { "curl -u admin:hunter2 h", "curl -u admin:" R " h", 1 },
        { "curl --user=admin:hunter2 h", "curl --user=admin:" R " h", 1 },
        { "curl -u \"admin:hunter2\" h", "curl -u \"admin:" R "\" h", 1 },
        /* Assignments. */
        { "PASSWORD=swordfish make", "PASSWORD=" R " make", 1 },
        { "export DB_PASSWORD=\"a b\\\"c\"; x", "export DB_PASSWORD=\"" R "\"; x", 1 },
        { "password = 'hunter2'", "password = '" R "'", 1 },
        { "config[\"password\"] = \"hunter2\"", "config[\"password\"] = \"" R "\"", 1 },
        { "password => \"hunter2\"", "password => \"" R "\"", 1 },
        { "token := \"abc\"", "token := \"" R "\"", 1 },
        { "password: hunter2", "password: " R, 1 },
        { "password: swordfish\nhost: h", "password: " R "\nhost: h", 1 },
        { "{\"password\": \"hunter2\", \"a\": 1}", "{\"password\": \"" R "\", \"a\": 1}", 1 },
        { "{\"pin\": {\"api_key\":12345}}", "{\"pin\": {\"api_key\":" R "}}", 1 },
        { "\"{\\\"token\\\":\\\"abc\\\"}\"", "\"{\\\"token\\\":\\\"" R "\\\"}\"", 1 },
        { "?user=a&token=abc&x=1", "?user=a&token=" R "&x=1", 1 },
        { "https://h/?sv=1&sig=abc%3D&x", "https://h/?sv=1&sig=" R "&x", 1 },
        { "Server=s;Uid=sa;Pwd=abc;x=1", "Server=s;Uid=sa;Pwd=" R ";x=1", 1 },
        { "DefaultEndpointsProtocol=https;AccountKey=ab+/c==;x",
          "DefaultEndpointsProtocol=https;AccountKey=" R ";x", 1 },
        /* Escaped once more, and once more. */
        { "{\\\"password\\\":\\\"a\\\\\\\"b\\\"}", "{\\\"password\\\":\\\"" R "\\\"}", 1 },
        { "{\\\\\\\"password\\\\\\\":\\\\\\\"x y\\\\\\\",\\\\\\\"a",
          "{\\\\\\\"password\\\\\\\":\\\\\\\"" R "\\\\\\\",\\\\\\\"a", 1 },
        { "{\"password\":\"ends in \\\\\",\"a\":1}", "{\"password\":\"" R "\",\"a\":1}", 1 },
        { "\"token=\\\"a b\" next", "\"token=\\\"" R "\" next", 1 },
        /* YAML below the name. */
        { "password:\n  hunter2\nhost: h", "password:\n  " R "\nhost: h", 1 },
        { "a:\n  password:\r\n\r\n    \"x y\"\r\n", "a:\n  password:\r\n\r\n    \"" R "\"\r\n", 1 },
        { "password: |\n  a b\n\n  c\nhost: h", "password: |\n  " R "\nhost: h", 1 },
        { "- api_key: >-\n    a\n  user: u", "- api_key: >-\n    " R "\n  user: u", 1 },
        { "secrets:\n- a1\n- b1\nhost: h", "secrets:\n- " R "\nhost: h", 1 },
        { "credentials:\n  user: u\n  password: p1\n",
          "credentials:\n  user: u\n  password: " R "\n", 1 },
        /* XML. */
        { "<password>x</password>", "<password>" R "</password>", 1 },
        { "<a><ns:apiKey type='s'>x y</ns:apiKey></a>",
          "<a><ns:apiKey type='s'>" R "</ns:apiKey></a>", 1 },
        { "<token><![CDATA[a<b]]></token>", "<token><![CDATA[" R "]]></token>", 1 },
        { "<secret><![CDATA[no end", "<secret><![CDATA[" R, 1 },
        /* Schemes and users. */
        { "Authorization Bearer\tabc123def", "Authorization Bearer\t" R, 1 },
        { "https://Ab12Cd34Ef@github.com/a", "https://" R "@github.com/a", 1 },
        { "https://a-token-of-many-letters@h:80/", "https://" R "@h:80/", 1 },
        /* Options that are secrets with their program. */
        { "mysql -u root -phunter2 db", "mysql -u root -p" R " db", 1 },
        { "/usr/bin/mysqldump -p'a b' db", "/usr/bin/mysqldump -p'" R "' db", 1 },
        { "mysql \\\n  -phunter2", "mysql \\\n  -p" R, 1 },
        { "sh -c 'sshpass -p hunter2 ssh -p 22 h'", "sh -c 'sshpass -p " R " ssh -p 22 h'", 1 },
        { "docker login -u u -p hunter2 reg", "docker login -u u -p " R " reg", 1 },
        { "redis-cli -h h -a hunter2 ping", "redis-cli -h h -a " R " ping", 1 },
        { "unzip -P x1 a.zip", "unzip -P " R " a.zip", 1 },
        { "curl -uu:X h", "curl -uu:" R " h", 1 },
        { "curl -s -U 'u:X' h", "curl -s -U 'u:" R "' h", 1 },
        { "openssl rsa -passin pass:X -in k", "openssl rsa -passin pass:" R " -in k", 1 },
        { "openssl enc -k X -in f", "openssl enc -k " R " -in f", 1 },
        { "secret=\"never closed\nnext line", "secret=\"" R "\nnext line", 1 },
    };
    struct arena a;

    arena_init(&a, 1024 * 1024);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        uint32_t erased = 0;
        struct slice s = redacted(cases[i].text, &a, &erased);

        if (!slice_equal(s, slice_from_cstr(cases[i].expected)) || erased != cases[i].erased) {
            fail_msg("%s\nbecame %.*s (%u)", cases[i].text, SLICE_ARG(s), erased);
        }
    }
    arena_clear(&a);
}

static void what_is_no_secret_is_left_alone(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "rm -rf / is not allowed",
        "Blocked by hook",
        "the password: must have 8 characters",
        "invalid token: the signature is wrong",
        "token: expired yesterday",
        "basic authentication is needed",
        "Basic Authentication is off",
        "the bearer of good news",
        "max_tokens=4096 token_count: 12",
        "\"usage\": {\"input_tokens\": 812, \"total_tokens\": 900}",
        "PASSWORD=$PASSWORD make",
        "PASSWORD=${DB_PASSWORD} make",
        "curl -H \"Authorization: $TOKEN\" h",
        "--password \"$(pass show db)\"",
        "password: null",
        "password = os.environ[\"PW\"]",
        "password = read_password(file)",
        "if password == other",
        "password=***",
        "printf 'token=%s' x",
        "password=[redacted]",
        "git clone https://github.com/a/b.git",
        "ssh://git@github.com/a",
        "http://localhost:8080/a@b",
        "mailto:someone@example.org",
        "docker run -u 1000:1000 image",
        "commit 3b1e7a4f0c5d9e8a7b6c5d4e3f2a1b0c9d8e7f6a",
        "id 018f0000-0000-7000-8000-000000000001",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "task-123 asks sk-learn, AKIA and eyJ to go",
        "std::token::Parser",
        "PWD=/home/a",
        "pass: 12 fail: 2",
        "--secret-name prod --token-type jwt",
        "secretName: db",
        "-p 8080",
        "docker run -p 8080:80 mysql",
        "mkdir -p dir",
        "mysql; mkdir -parents",
        "mysql -p db",
        "mysql -P 3306 -p$PW",
        "ssh -p 22 h",
        "sshpass -f file ssh -p 22 h",
        "sshpass -e ssh -p 22 h",
        "unzip -p a.zip",
        "tar -uu:x",
        "openssl rsa -passin env:PW",
        "docker login --password-stdin registry",
        "https://user@host",
        "ssh://ec2-user@host1",
        "https://${A_LONG_NAME_OF_A_TOKEN}@github.com",
        "usage: tool --user <user> --password <password> FILE",
        "<password/> <password></password> <password> </password>",
        "<password>${PW}</password>",
        "if a<token> b",
        "password:\nhost: h",
        "password:\n  must have eight letters",
        "secrets:\n  - name: x\n",
        "password: |\nhost: h",
        "gr\xc3\xb6\xc3\x9f"
        "e: \xf0\x9f\x98\x80",
    };
    struct arena a;

    arena_init(&a, 0);
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct slice text = slice_from_cstr(texts[i]);
        struct slice s = { 0 };
        uint32_t erased = 0;

        if (!redact_text(text, &a, &s, &erased) || s.ptr != text.ptr || s.len != text.len ||
            erased != 0) {
            fail_msg("was changed: %s", texts[i]);
        }
    }
}

/* A search that began anew at each piece would not come back within the hour. */
static void the_cost_grows_with_the_length_alone(void **state)
{
    (void)state;
    static const char *const pieces[] = {
        "eyJ-",
        "e-",
        "eyJaaaaaaaaaaaa.",
        "-u=",
        "-u=a:${",
        "a://u:",
        "password=a(",
        "cookie:${",
        "password=getenv",
        "password='",
        "token:\\\"",
        "token:\\",
        "-----BEGIN PRIVATE KEY",
        "sk-",
        "glpat-",
        "Basic ",
        "--password ",
        "password:a ",
        "a  \t ",
        "password:\n ",
        "password: |\n${",
        "password:\n- ${",
        "<password>",
        "<password ",
        "<a:password>${",
        "a:password>",
        "<token><![CDATA[${",
        "password:\\\\\\\"",
        "password:'${'",
        "mysql -p ",
        "-p -P -a -w ",
        "mysql -p'${' ",
        "a://bcd@",
        "Bearer\t",
        "-pass pass:",
    };
    enum { BYTES = 1024 * 1024 };
    struct arena a;
    struct buf text;

    arena_init(&a, (size_t)64 * BYTES);
    buf_init(&text, 2 * BYTES);
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        uint32_t erased = 0;
        struct slice s;

        while (text.len_bytes < BYTES) {
            buf_add(&text, slice_from_cstr(pieces[i]));
        }
        assert_true(redact_text(buf_slice(&text), &a, &s, &erased));
        buf_clear(&text);
        arena_clear(&a);
    }
    buf_done(&text);
}

static void redacting_again_changes_nothing(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "password=hunter2 --token abc https://a:b@c Authorization: Bearer abc123 " AWS,
        "{\"password\":\"x\"} curl -u a:b Cookie: a=b",
    };
    struct arena a;

    arena_init(&a, 64 * 1024);
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        uint32_t erased = 0;
        struct slice once = redacted(texts[i], &a, &erased);
        struct slice twice = { 0 };

        assert_true(redact_text(once, &a, &twice, &erased));
        if (!slice_equal(once, twice)) {
            fail_msg("%.*s\n%.*s", SLICE_ARG(once), SLICE_ARG(twice));
        }
    }
    arena_clear(&a);
}

static void a_text_that_does_not_fit_into_the_arena_is_a_failure(void **state)
{
    (void)state;
    struct arena none;
    struct slice s;
    uint32_t erased = 0;

    arena_init(&none, 0);
    assert_false(redact_text(SLICE("password=hunter2"), &none, &s, &erased));
    assert_int_equal(erased, 0);
}

static void json_equals(const char *text, size_t max_bytes, const char *expected, uint32_t erased)
{
    struct json_value v;
    struct err err;
    struct buf out;
    uint32_t counted = 0;

    buf_init(&out, 1024 * 1024);
    assert_true(payload_check(slice_from_cstr(text), &v, &err));
    redact_json(v, max_bytes, &out, &counted);
    if (strcmp(buf_cstr(&out), expected) != 0 || counted != erased) {
        fail_msg("%s\nbecame %s (%u)", text, buf_cstr(&out), counted);
    }
    buf_done(&out);
}

static void json_is_redacted_by_name_and_by_shape(void **state)
{
    (void)state;
    static const struct redaction cases[] = {
        { " { \"a\" : 1.50, \"b\" : [ true, null ] } ", "{\"a\":1.50,\"b\":[true,null]}", 0 },
        { "{}", "{}", 0 },
        { "[ ]", "[]", 0 },
        { "\"plain \\u00e4\"", "\"plain \\u00e4\"", 0 },
        { "{\"password\":\"x\",\"user\":\"u\"}", "{\"password\":\"" R "\",\"user\":\"u\"}", 1 },
        { "{\"pass\\u0077ord\":\"x\"}", "{\"pass\\u0077ord\":\"" R "\"}", 1 },
        { "{\"token\":12,\"secret\":true,\"apiKey\":null}",
          "{\"token\":\"" R "\",\"secret\":true,\"apiKey\":null}", 1 },
        { "{\"a\":{\"b\":[{\"dbPassword\":\"x\"}]}}",
          "{\"a\":{\"b\":[{\"dbPassword\":\"" R "\"}]}}", 1 },
        { "{\"credentials\":{\"user\":\"u\",\"list\":[\"p\",1,{}]}}",
          "{\"credentials\":{\"user\":\"" R "\",\"list\":[\"" R "\",\"" R "\",{}]}}", 3 },
        { "{\"password\":\"a\",\"password\":\"b\"}",
          "{\"password\":\"" R "\",\"password\":\"" R "\"}", 2 },
        { "{\"max_tokens\":100,\"token_count\":3}", "{\"max_tokens\":100,\"token_count\":3}", 0 },
        { "[{\"name\":\"DB_PASSWORD\",\"value\":\"x\"},{\"value\":\"y\",\"name\":\"HOME\"}]",
          "[{\"name\":\"DB_PASSWORD\",\"value\":\"" R "\"},{\"value\":\"y\",\"name\":\"HOME\"}]",
          1 },
        { "{\"value\":\"x\",\"key\":\"Authorization\"}",
          "{\"value\":\"" R "\",\"key\":\"Authorization\"}", 1 },
        { "{\"command\":\"export TOKEN=\\\"abc\\\"\\nls\"}",
          "{\"command\":\"export TOKEN=\\\"" R "\\\"\\nls\"}", 1 },
        { "{\"" AWS "\":\"" JWT "\"}", "{\"" R "\":\"" R "\"}", 2 },
        { "[\"a\\u0000b\",\"\\ud800\",\"\\ud83d\\ude00\"]",
          "[\"a\xef\xbf\xbd"
          "b\",\"\xef\xbf\xbd\",\"\\ud83d\\ude00\"]",
          2 },
        /* Arguments of a program, and lines of a file. */
        { "{\"args\":[\"--password\",\"hunter88x\",\"-v\"]}",
          "{\"args\":[\"--password\",\"" R "\",\"-v\"]}", 1 },
        { "[\"--password\",\"a b\",\"c d\"]", "[\"--password\",\"" R "\",\"c d\"]", 1 },
        { "[\"tool\",\"--api-key\",12345,7]", "[\"tool\",\"--api-key\",\"" R "\",7]", 1 },
        { "[\"sshpass\",\"-p\",\"x\",\"ssh\",\"-p\",\"22\"]",
          "[\"sshpass\",\"-p\",\"" R "\",\"ssh\",\"-p\",\"22\"]", 1 },
        { "[\"mysql\",\"-phunter2\"]", "[\"mysql\",\"" R "\"]", 1 },
        { "[\"curl\",\"-u\",\"u:x\",\"-H\",\"X-Api-Key: k1\"]",
          "[\"curl\",\"-u\",\"" R "\",\"-H\",\"X-Api-Key: " R "\"]", 2 },
        { "[\"openssl\",\"-passin\",\"pass:x\"]", "[\"openssl\",\"-passin\",\"" R "\"]", 1 },
        { "[\"password: \",\"hunter2\"]", "[\"password: \",\"" R "\"]", 1 },
        { "[\"--password\",\"--verbose\",\"--token-type\",\"jwt\"]",
          "[\"--password\",\"--verbose\",\"--token-type\",\"jwt\"]", 0 },
        { "[\"--password\",[\"x\"],\"$PW\",\"mkdir\",\"-p\",\"d\"]",
          "[\"--password\",[\"x\"],\"$PW\",\"mkdir\",\"-p\",\"d\"]", 0 },
        { "{\"required\":[\"user\",\"password\",\"token\"]}",
          "{\"required\":[\"user\",\"password\",\"token\"]}", 0 },
        { "{\"\\ud800\":1}", "{\"\xef\xbf\xbd\":1}", 1 },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        json_equals(cases[i].text, 4096, cases[i].expected, cases[i].erased);
    }
}

static void over_the_limit_only_the_skeleton_is_left(void **state)
{
    (void)state;

    json_equals("{\"a\":\"0123456789\",\"b\":[1,2,3],\"c\":null}", 38, "\"[object, 39 bytes]\"", 1);
    json_equals("{\"a\":\"0123456789012345678901234567890123456789012345678901234567890123\"}", 40,
                "{\"a\":\"[string, 66 bytes]\"}", 1);
    json_equals("{\"ab\":\"0123456789\",\"b\":[1,2,3 ]}", 22, "\"[object, 32 bytes]\"", 1);
    json_equals("[1,2,3,4,5,6,7,8,9,10,11,12,13]", 20, "\"[array, 31 bytes]\"", 1);
    json_equals("\"a text that is too long by far\"", 22, "\"[string, 32 bytes]\"", 1);
}

static void the_skeleton_of_a_large_object_has_no_content(void **state)
{
    (void)state;
    struct buf text;
    struct buf out;
    struct json_value v;
    struct err err;
    uint32_t erased = 0;

    buf_init(&text, 1024 * 1024);
    buf_init(&out, 1024 * 1024);
    buf_add(&text, SLICE("{\"command\":\"ls\",\"" AWS "\":1,\"output\":\""));
    for (int i = 0; i < 50000; i++) {
        buf_add(&text, SLICE("content "));
    }
    buf_add(&text, SLICE("\"}"));
    assert_true(payload_check(buf_slice(&text), &v, &err));
    redact_json(v, 32 * 1024, &out, &erased);
    assert_string_equal(buf_cstr(&out),
                        "{\"command\":\"[string, 4 bytes]\",\"" R "\":\"[number, 1 bytes]\","
                        "\"output\":\"[string, 400002 bytes]\"}");
    assert_int_equal(erased, 4);
    buf_done(&text);
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_secrets_are_known_in_any_spelling),
        cmocka_unit_test(names_that_only_speak_of_secrets_are_left),
        cmocka_unit_test(secrets_in_a_text_are_replaced),
        cmocka_unit_test(what_is_no_secret_is_left_alone),
        cmocka_unit_test(the_cost_grows_with_the_length_alone),
        cmocka_unit_test(redacting_again_changes_nothing),
        cmocka_unit_test(a_text_that_does_not_fit_into_the_arena_is_a_failure),
        cmocka_unit_test(json_is_redacted_by_name_and_by_shape),
        cmocka_unit_test(over_the_limit_only_the_skeleton_is_left),
        cmocka_unit_test(the_skeleton_of_a_large_object_has_no_content),
    };

    return cmocka_run_group_tests_name("recorder/redact", tests, NULL, NULL);
}
