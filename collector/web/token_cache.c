/*
 * The file is looked at for each request (one stat), and read when its inode,
 * size or time is another one: fs_replace always makes a new inode.
 */
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#include <openssl/crypto.h>

#include "collector/base/clock.h"
#include "collector/base/log.h"
#include "collector/base/mem.h"
#include "collector/web/token_file.h"

struct token_cache {
    char *path;
    pthread_mutex_t mutex; /* over everything below */
    struct stat seen;      /* st_ino 0: there is no file, or it must be read again */
    bool unreadable;       /* told once, until it can be read again */
    struct token_entry *entries;
    size_t n;
};

struct token_cache *token_cache_new(const char *path)
{
    struct token_cache *c = xcalloc(1, sizeof(*c));
    size_t size = strlen(path) + 1;

    c->path = memcpy(xcalloc(size, 1), path, size);
    (void)pthread_mutex_init(&c->mutex, NULL);
    return c;
}

void token_cache_free(struct token_cache *c)
{
    if (!c) {
        return;
    }
    (void)pthread_mutex_destroy(&c->mutex);
    free(c->entries);
    free(c->path);
    free(c);
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/*
 * Take over what the file says; an item that we did not write lets nobody in. False:
 * the disk did not give it now, so the next request must ask again.
 */
static bool reload(struct token_cache *c)
{
    json_t *list;
    size_t i;
    const json_t *item;
    struct err err;

    c->n = 0;
    if (!token_file_read(c->path, &list, &err)) {
        if (!c->unreadable) {
            log_error("tokens cannot be read, none is accepted", log_str("err", err.text));
        }
        c->unreadable = err.code == ERR_IO;
        return !c->unreadable;
    }
    c->unreadable = false;
    c->entries = xrealloc(c->entries, (json_array_size(list) + 1) * sizeof(*c->entries));
    json_array_foreach(list, i, item)
    {
        if (i < TOKEN_COUNT_MAX && token_entry_read(item, &c->entries[c->n])) {
            c->n++;
        } else {
            log_warn("token ignored", log_str("file", c->path), log_i64("item", (int64_t)i));
        }
    }
    json_decref(list);
    return true;
}

static void refresh(struct token_cache *c)
{
    struct stat now = { 0 };

    if (stat(c->path, &now) < 0) {
        now = (struct stat){ 0 };
    }
    if (!same_file(&now, &c->seen)) {
        c->seen = reload(c) ? now : (struct stat){ 0 };
    }
}

bool token_cache_find(struct token_cache *c, struct slice token, unsigned *ret_scopes,
                      char ret_name[TOKEN_NAME_MAX + 1])
{
    struct digest hash = digest_of(token);
    const struct token_entry *found = NULL;

    (void)pthread_mutex_lock(&c->mutex);
    refresh(c);
    /* Every entry is compared, in constant time, whichever fits. */
    for (size_t i = 0; i < c->n; i++) {
        if (CRYPTO_memcmp(hash.bytes, c->entries[i].hash.bytes, sizeof(hash.bytes)) == 0) {
            found = &c->entries[i];
        }
    }

    bool ok = found && (found->expires_us == 0 || clock_now_us() < found->expires_us);

    if (ok) {
        *ret_scopes = found->scopes;
        memcpy(ret_name, found->name, sizeof(found->name));
    }
    (void)pthread_mutex_unlock(&c->mutex);
    return ok;
}
