#include "collector/base/yaml.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <yaml.h>

#include "collector/base/buf.h"
#include "collector/base/fs.h"
#include "collector/base/lines.h"
#include "collector/base/mem.h"
#include "collector/base/yaml_scalar.h"

enum {
    ANCHORS_MAX = 256,             /* of one document */
    DOCUMENTS_MAX = 10000,         /* a hook a document */
    KEYS_BYTES = 32 * 1024 * 1024, /* copies of all keys */
    PATH_BYTES = 256,              /* of a key's path in a message */
};

struct yaml {
    char *file;
    json_t *roots;      /* array of documents */
    size_t *root_lines; /* as many */
    struct lines lines;
};

/* What an anchor names: a node that is complete, and what it costs to use it again. */
struct anchor {
    char *name;
    json_t *node;  /* borrowed from the tree; NULL while it is being read */
    size_t nodes;  /* it and everything under it */
    size_t height; /* levels of containers */
};

/* A container that is being read. */
struct frame {
    json_t *node;      /* borrowed from the tree above it */
    char *key;         /* owned: the last key of a mapping; NULL in an array */
    bool value_is_due; /* of that key */
    size_t key_line;
    size_t anchor;     /* index + 1; 0: none */
    size_t first_node; /* nodes counted before it */
    size_t height;     /* levels below it so far */
};

struct reader {
    struct yaml *y;
    yaml_parser_t parser;
    struct faults *faults;
    struct slice text;
    struct frame stack[YAML_MAX_DEPTH];
    size_t depth;
    struct anchor anchors[ANCHORS_MAX];
    size_t n_anchors;
    size_t nodes;
};

/* Where we are: "spec.hooks[2].timeout"; "" at the root. */
static void write_path(const struct reader *r, char path[PATH_BYTES])
{
    size_t used = 0;

    path[0] = '\0';
    for (size_t i = 0; i < r->depth && used < PATH_BYTES; i++) {
        const struct frame *f = &r->stack[i];
        int n = 0;

        if (json_is_array(f->node)) {
            size_t complete = json_array_size(f->node) - (i + 1 < r->depth ? 1 : 0);

            n = snprintf(path + used, PATH_BYTES - used, "[%zu]", complete);
        } else if (f->key) {
            n = snprintf(path + used, PATH_BYTES - used, "%s%s", used > 0 ? "." : "", f->key);
        }
        used += n > 0 ? (size_t)n : 0;
    }
}

/* Add a fault at `line`, with the path of where we are. Returns false. */
static bool fault(struct reader *r, size_t line, const char *text)
{
    char path[PATH_BYTES];

    write_path(r, path);
    faults_add(r->faults, FAULT_ERROR, r->y->file, line, path[0] ? path : NULL, "%s", text);
    return false;
}

static size_t line_of(const yaml_event_t *e)
{
    return e->start_mark.line + 1;
}

/* libyaml tells a place for what it cannot parse, and a byte for what it cannot read. */
static bool syntax_fault(struct reader *r)
{
    const yaml_parser_t *p = &r->parser;
    size_t line = p->problem_mark.line + 1;

    if (p->error == YAML_READER_ERROR) {
        line = 1;
        for (size_t i = 0; i < p->problem_offset && i < r->text.len; i++) {
            line += r->text.ptr[i] == '\n';
        }
    }
    faults_add(r->faults, FAULT_ERROR, r->y->file, line, NULL, "not YAML: %s%s%s",
               p->problem ? p->problem : "out of memory", p->context ? " " : "",
               p->context ? p->context : "");
    return false;
}

/* Count n more nodes, of which the deepest stands `height` levels below this one. */
static bool count(struct reader *r, size_t line, size_t n, size_t height)
{
    if (n > YAML_MAX_NODES - r->nodes) {
        return fault(r, line, "more than 200000 values in one file (aliases count where used)");
    }
    if (r->depth + height > YAML_MAX_DEPTH) {
        return fault(r, line, "nested more than 64 levels deep");
    }
    r->nodes += n;
    if (r->depth > 0 && r->stack[r->depth - 1].height < height) {
        r->stack[r->depth - 1].height = height;
    }
    return true;
}

/* A scalar where a key is due. */
static bool take_key(struct reader *r, const yaml_event_t *e)
{
    struct frame *f = &r->stack[r->depth - 1];

    free(TAKE_PTR(f->key));
    if (e->type != YAML_SCALAR_EVENT) {
        return fault(r, line_of(e), "a key must be a plain word or a string");
    }

    const char *key = (const char *)e->data.scalar.value;
    size_t len = e->data.scalar.length;

    if (e->data.scalar.tag || e->data.scalar.anchor || memchr(key, '\0', len)) {
        return fault(r, line_of(e), "a key takes no tag, no anchor and no NUL character");
    }

    size_t before = lines_get(&r->y->lines, f->node, key);

    f->key = strndup(key, len);
    f->key_line = line_of(e);
    f->value_is_due = true;
    if (!f->key) {
        abort();
    }
    if (before > 0) {
        char text[64];

        (void)snprintf(text, sizeof(text), "stands twice, first on line %zu", before);
        return fault(r, line_of(e), text);
    }
    return true;
}

/* Hang `node` (taken) where it belongs. */
static bool attach(struct reader *r, size_t line, json_t *node)
{
    struct yaml *y = r->y;

    if (r->depth == 0) {
        size_t n = json_array_size(y->roots);

        y->root_lines = xrealloc(y->root_lines, (n + 1) * sizeof(*y->root_lines));
        y->root_lines[n] = line;
        return json_array_append_new(y->roots, node) == 0;
    }

    struct frame *f = &r->stack[r->depth - 1];

    if (json_is_array(f->node)) {
        return json_array_append_new(f->node, node) == 0;
    }

    bool ok = lines_put(&y->lines, f->node, f->key, f->key_line) &&
              json_object_set_new(f->node, f->key, node) == 0;

    f->value_is_due = false;
    return ok;
}

/* Remember an anchor; *ret is its index + 1, or 0 where there is none. */
static bool add_anchor(struct reader *r, size_t line, const yaml_char_t *name, size_t *ret)
{
    *ret = 0;
    if (!name) {
        return true;
    }
    if (r->n_anchors == ANCHORS_MAX) {
        return fault(r, line, "more than 256 anchors in one document");
    }

    struct anchor *a = &r->anchors[r->n_anchors++];

    *a = (struct anchor){ .name = strdup((const char *)name) };
    if (!a->name) {
        abort();
    }
    *ret = r->n_anchors;
    return true;
}

static void forget_anchors(struct reader *r)
{
    while (r->n_anchors > 0) {
        free(r->anchors[--r->n_anchors].name);
    }
}

static bool on_scalar(struct reader *r, const yaml_event_t *e)
{
    size_t anchor = 0;
    char text[128];

    if (e->data.scalar.tag) {
        return fault(r, line_of(e), "a tag is not taken here");
    }
    if (!count(r, line_of(e), 1, 0) || !add_anchor(r, line_of(e), e->data.scalar.anchor, &anchor)) {
        return false;
    }

    struct slice value = { .ptr = (const char *)e->data.scalar.value,
                           .len = e->data.scalar.length };
    json_t *node =
        yaml_scalar(value, e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE, text, sizeof(text));

    if (!node) {
        return fault(r, line_of(e), text);
    }
    if (anchor > 0) {
        r->anchors[anchor - 1].node = node;
        r->anchors[anchor - 1].nodes = 1;
    }
    return attach(r, line_of(e), node);
}

static bool on_alias(struct reader *r, const yaml_event_t *e)
{
    const char *name = (const char *)e->data.alias.anchor;
    const struct anchor *a = NULL;

    for (size_t i = r->n_anchors; i > 0 && !a; i--) {
        a = strcmp(r->anchors[i - 1].name, name) == 0 ? &r->anchors[i - 1] : NULL;
    }
    if (!a) {
        return fault(r, line_of(e), "an alias of an anchor that is not there");
    }
    if (!a->node) {
        return fault(r, line_of(e), "an alias inside of what it stands for");
    }
    return count(r, line_of(e), a->nodes, a->height) && attach(r, line_of(e), json_incref(a->node));
}

/* A mapping or a sequence begins. */
static bool on_open(struct reader *r, const yaml_event_t *e)
{
    bool map = e->type == YAML_MAPPING_START_EVENT;
    const yaml_char_t *tag = map ? e->data.mapping_start.tag : e->data.sequence_start.tag;
    const yaml_char_t *name = map ? e->data.mapping_start.anchor : e->data.sequence_start.anchor;
    json_t *node = map ? json_object() : json_array();
    struct frame f = { .node = node, .first_node = r->nodes };

    if (tag) {
        json_decref(node);
        return fault(r, line_of(e), "a tag is not taken here");
    }
    if (!count(r, line_of(e), 1, 1) || !add_anchor(r, line_of(e), name, &f.anchor)) {
        json_decref(node);
        return false;
    }
    if (!attach(r, line_of(e), node)) {
        return fault(r, line_of(e), "the keys of this file are too long");
    }
    r->stack[r->depth++] = f;
    return true;
}

/* It ends: what it names may be used from now on. */
static void on_close(struct reader *r)
{
    struct frame f = r->stack[--r->depth];

    free(f.key);
    if (r->depth > 0 && r->stack[r->depth - 1].height < f.height + 1) {
        r->stack[r->depth - 1].height = f.height + 1;
    }
    if (f.anchor > 0) {
        struct anchor *a = &r->anchors[f.anchor - 1];

        a->node = f.node;
        a->nodes = r->nodes - f.first_node;
        a->height = f.height + 1;
    }
}

/* True when the innermost container is a mapping that waits for a key. */
static bool key_is_due(const struct reader *r)
{
    return r->depth > 0 && json_is_object(r->stack[r->depth - 1].node) &&
           !r->stack[r->depth - 1].value_is_due;
}

static bool on_event(struct reader *r, const yaml_event_t *e)
{
    switch (e->type) {
    case YAML_DOCUMENT_START_EVENT:
        forget_anchors(r);
        return json_array_size(r->y->roots) < DOCUMENTS_MAX ||
               fault(r, line_of(e), "more than 10000 documents in one file");
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        on_close(r);
        return true;
    case YAML_SCALAR_EVENT:
        return key_is_due(r) ? take_key(r, e) : on_scalar(r, e);
    case YAML_ALIAS_EVENT:
        return key_is_due(r) ? take_key(r, e) : on_alias(r, e);
    case YAML_MAPPING_START_EVENT:
    case YAML_SEQUENCE_START_EVENT:
        return key_is_due(r) ? take_key(r, e) : on_open(r, e);
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        return true;
    }
    return true;
}

/* All events of the stream. */
static bool read_stream(struct reader *r)
{
    bool more = true;

    while (more) {
        yaml_event_t e;

        if (!yaml_parser_parse(&r->parser, &e)) {
            return syntax_fault(r);
        }
        more = e.type != YAML_STREAM_END_EVENT;

        bool ok = on_event(r, &e);

        yaml_event_delete(&e);
        if (!ok) {
            return false;
        }
    }
    return true;
}

static struct yaml *new_yaml(const char *file)
{
    struct yaml *y = xcalloc(1, sizeof(*y));

    y->file = strdup(file);
    y->roots = json_array();
    lines_init(&y->lines, KEYS_BYTES);
    if (!y->file || !y->roots) {
        abort();
    }
    return y;
}

/* A byte order mark, with which some editors begin a file, is no part of the text. */
static struct slice without_mark(struct slice text)
{
    struct slice mark = SLICE("\xef\xbb\xbf");

    if (slice_starts_with(text, mark)) {
        text.ptr += mark.len;
        text.len -= mark.len;
    }
    return text;
}

static void free_reader(struct reader *r)
{
    while (r->depth > 0) {
        free(r->stack[--r->depth].key);
    }
    forget_anchors(r);
    yaml_parser_delete(&r->parser);
    free(r);
}

struct yaml *yaml_parse(const char *file, struct slice text, struct faults *faults)
{
    if (text.len > YAML_MAX_BYTES) {
        faults_add(faults, FAULT_ERROR, file, 0, NULL, "larger than 4 MiB");
        return NULL;
    }

    struct reader *r = xcalloc(1, sizeof(*r));
    struct yaml *y = new_yaml(file);

    r->y = y;
    r->faults = faults;
    r->text = without_mark(text);
    if (!yaml_parser_initialize(&r->parser)) {
        abort();
    }
    yaml_parser_set_encoding(&r->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r->parser, (const unsigned char *)r->text.ptr, r->text.len);

    size_t errors = faults->errors;
    bool ok = read_stream(r);

    if (!ok && faults->errors == errors) {
        faults_add(faults, FAULT_ERROR, file, 0, NULL, "out of memory for its keys");
    }
    free_reader(r);
    if (!ok) {
        yaml_close(y);
        return NULL;
    }
    return y;
}

struct yaml *yaml_load(const char *path, struct faults *faults)
{
    /* Without waiting: a FIFO in place of the file must not hold us. */
    CLEANUP(fs_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    CLEANUP(buf_done) struct buf text;
    struct stat st;
    struct err err;

    buf_init(&text, YAML_MAX_BYTES);
    if (fd < 0 || fstat(fd, &st) < 0) {
        faults_add(faults, FAULT_ERROR, path, 0, NULL, "cannot be read: %s", strerror(errno));
        return NULL;
    }
    if (!S_ISREG(st.st_mode)) {
        faults_add(faults, FAULT_ERROR, path, 0, NULL, "cannot be read: not a file");
        return NULL;
    }
    if (!fs_read_all(fd, &text, &err)) {
        faults_add(faults, FAULT_ERROR, path, 0, NULL, "cannot be read: %s", err.text);
        return NULL;
    }
    return yaml_parse(path, buf_slice(&text), faults);
}

void yaml_close(struct yaml *y)
{
    if (!y) {
        return;
    }
    json_decref(y->roots);
    lines_done(&y->lines);
    free(y->root_lines);
    free(y->file);
    free(y);
}

size_t yaml_count(const struct yaml *y)
{
    return json_array_size(y->roots);
}

json_t *yaml_root(const struct yaml *y, size_t i)
{
    return json_array_get(y->roots, i);
}

const char *yaml_file(const struct yaml *y)
{
    return y->file;
}

size_t yaml_root_line(const struct yaml *y, size_t i)
{
    return i < yaml_count(y) ? y->root_lines[i] : 0;
}

size_t yaml_key_line(const struct yaml *y, const json_t *object, const char *key)
{
    return lines_get(&y->lines, object, key);
}
