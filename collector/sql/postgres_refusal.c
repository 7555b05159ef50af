/* What PostgreSQL's refusals mean, and how they are told. */
#include <stdio.h>
#include <string.h>

#include "collector/sql/postgres_state.h"

enum { NAME_CHARS = 63 }; /* of a table or column: NAMEDATALEN - 1 */

enum sql_class postgres_class(const char *sqlstate)
{
    static const struct {
        const char *prefix;
        enum sql_class class;
    } table[] = {
        { "22021", SQL_DATA },  /* bytes that are no text of the encoding */
        { "22P02", SQL_DATA },  /* a body that the server does not read as JSON */
        { "22P05", SQL_DATA },  /* a character that the encoding lacks */
        { "22008", SQL_DATA },  /* a time past what it holds */
        { "54", SQL_DATA },     /* a limit of the server passed, e.g. an index row's size */
        { "40", SQL_AGAIN },    /* rolled back: deadlock, serialization */
        { "53", SQL_AGAIN },    /* no disk, memory, connections */
        { "55P03", SQL_AGAIN }, /* a lock was not to be had in time */
        { "57014", SQL_AGAIN }, /* statement time-out, cancelled */
        { "57", SQL_LOST },     /* shut down, starting up */
        { "08", SQL_LOST },     /* connection */
        { "25006", SQL_LOST },  /* read-only: a standby, before or after a switch */
        { "XX", SQL_LOST },     /* internal error: look again with a new connection */
        { "58", SQL_AGAIN },    /* I/O error of the server's system */
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (strncmp(sqlstate, table[i].prefix, strlen(table[i].prefix)) == 0) {
            return table[i].class;
        }
    }
    /*
     * Schema, permission, syntax, a constraint; of the data exceptions those that only a
     * changed column or a trigger brings: a text too long, another type's binary form.
     */
    return SQL_REFUSED;
}

/* libpq's message as one line; it ends in a newline and may have several. */
static void set_text(struct err *err, enum err_code code, const char *message)
{
    char line[ERR_TEXT_SIZE];
    size_t n = 0;

    for (; *message && n + 1 < sizeof(line); message++) {
        bool blank = *message == '\n' || *message == '\t';

        if (!blank || (n > 0 && line[n - 1] != ' ')) {
            line[n++] = (char)(blank ? ' ' : *message);
        }
    }
    while (n > 0 && line[n - 1] == ' ') {
        n--;
    }
    line[n] = '\0';
    (void)err_set(err, code, "postgres: %s", n > 0 ? line : "the connection is gone");
}

enum sql_class postgres_gone(struct postgres *p, struct err *err)
{
    p->lost = true;
    set_text(err, ERR_IO, PQerrorMessage(p->conn));
    return SQL_LOST;
}

/* What the words leave open: who lacks the permission, where else to go. */
static void add_advice(const struct postgres *p, struct err *err)
{
    size_t len = strlen(err->text);

    if (strcmp(p->sqlstate, "42501") == 0) {
        (void)snprintf(err->text + len, sizeof(err->text) - len, " (for role %s)", PQuser(p->conn));
    }
    if (strcmp(p->sqlstate, "25006") == 0) {
        (void)snprintf(
            err->text + len, sizeof(err->text) - len,
            "; target_session_attrs=read-write in the dsn finds the primary among hosts");
    }
}

/* Which column refuses a value, from a context like "COPY t, line 1, column c". */
static void add_column(const PGresult *result, struct err *err)
{
    const char *context = PQresultErrorField(result, PG_DIAG_CONTEXT);
    size_t len = strlen(err->text);
    char table[NAME_CHARS + 1];
    char column[NAME_CHARS + 1];

    if (context &&
        sscanf(context, "COPY %63[^,], line %*u, column %63[^ ,:\n]", table, column) == 2) {
        (void)snprintf(err->text + len, sizeof(err->text) - len, ": column %s.%s", table, column);
    }
}

/*
 * What no SQLSTATE tells: the column has another type than ours. One of jsonb answers with
 * an internal error, and no text of ours has a NUL: it is a number's or a time's, in binary.
 */
static bool is_of_another_type(const char *state, const char *message)
{
    return (strcmp(state, "XX000") == 0 && strstr(message, "jsonb version number")) ||
           (strcmp(state, "22021") == 0 && strstr(message, ": 0x00"));
}

/* A refusal's words and what they mean. */
enum sql_class postgres_refused(struct postgres *p, const PGresult *result, struct err *err)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    enum sql_class class;

    if (!state) {
        return postgres_gone(p, err);
    }
    if (!message) {
        message = PQresultErrorMessage(result);
    }
    memcpy(p->sqlstate, state, sizeof(p->sqlstate) - 1);
    class = is_of_another_type(state, message) ? SQL_REFUSED : postgres_class(state);
    set_text(err, class == SQL_DATA || class == SQL_REFUSED ? ERR_INVALID : ERR_IO, message);
    add_advice(p, err);
    add_column(result, err);
    p->lost = p->lost || class == SQL_LOST;
    return class;
}
