/*
 * class: what a database's refusal means for whoever asked, the same for each
 * database. The error's text is in struct err; this says what to do about it.
 */
#pragma once

enum sql_class {
    SQL_DONE = 0,
    SQL_AGAIN,   /* busy, full, out of time: nothing counts, the same call may work later */
    SQL_LOST,    /* the connection or the file is in doubt: open it anew, then look */
    SQL_DATA,    /* it refuses these values, and always will */
    SQL_REFUSED, /* schema, permission, damage: a person must act */
};
