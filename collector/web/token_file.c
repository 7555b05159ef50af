#include "collector/web/token_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <string.h>

#include "collector/base/buf.h"
#include "collector/base/clock.h"
#include "collector/base/fs.h"

bool token_file_read(const char *path, json_t **ret_list, struct err *err)
{
    CLEANUP(buf_done) struct buf text;
    CLEANUP(fs_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    json_error_t why;

    buf_init(&text, TOKEN_FILE_MAX_BYTES);
    if (fd < 0 && errno == ENOENT) {
        *ret_list = json_array();
        return true;
    }
    if (fd < 0) {
        return err_errno(err, errno, "open %s", path);
    }
    if (!fs_read_all(fd, &text, err)) {
        return err_wrap(err, "%s", path);
    }

    json_t *root = json_loadb(text.ptr, text.len_bytes, JSON_REJECT_DUPLICATES, &why);
    json_t *list = json_object_get(root, "tokens");

    if (!json_is_array(list)) {
        json_decref(root);
        return err_set(err, ERR_CORRUPT, "%s:%d: %s", path, root ? 1 : why.line,
                       root ? "tokens: must be a list" : why.text);
    }
    *ret_list = json_incref(list);
    json_decref(root);
    return true;
}

bool token_file_write(const char *path, const json_t *list, struct err *err)
{
    char folder[PATH_MAX];
    char name[PATH_MAX];

    (void)snprintf(folder, sizeof(folder), "%s", path);
    (void)snprintf(name, sizeof(name), "%s", path);

    CLEANUP(fs_closep) int dir = open(dirname(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (dir < 0) {
        return err_errno(err, errno, "open the folder of %s", path);
    }

    json_t *root = json_pack("{s:O}", "tokens", list);
    char *text = json_dumps(root, JSON_INDENT(2));
    bool ok = fs_replace(dir, basename(name), slice_from_cstr(text), err);

    free(text);
    json_decref(root);
    return ok;
}

static bool read_time(const json_t *item, const char *key, int64_t *ret)
{
    const char *text = json_string_value(json_object_get(item, key));

    return text && clock_parse(slice_from_cstr(text), ret);
}

bool token_entry_read(const json_t *item, struct token_entry *ret)
{
    const char *name = json_string_value(json_object_get(item, "name"));
    const char *hash = json_string_value(json_object_get(item, "hash"));
    const char *scopes = json_string_value(json_object_get(item, "scopes"));
    struct token_entry e = { 0 };
    struct err ignored;

    if (!name || strlen(name) > TOKEN_NAME_MAX || !hash || !scopes) {
        return false;
    }
    (void)snprintf(e.name, sizeof(e.name), "%s", name);
    if (!digest_from_hex(slice_from_cstr(hash), &e.hash) ||
        !token_scopes_parse(slice_from_cstr(scopes), &e.scopes, &ignored) ||
        !read_time(item, "created", &e.created_us)) {
        return false;
    }
    /* An expiry that cannot be read must not mean "never". */
    if (json_object_get(item, "expires") && !read_time(item, "expires", &e.expires_us)) {
        return false;
    }
    *ret = e;
    return true;
}
