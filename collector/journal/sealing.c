#include "collector/journal/sealing.h"

#include <inttypes.h>
#include <stdlib.h>

#include "collector/base/clock.h"
#include "collector/base/mem.h"

struct sealing {
    struct sealing_options o;
    uint64_t first_seq; /* of the range that is open */
    uint64_t last_seq;  /* 0: no frame yet */
    uint64_t checkpoint_seq;
    struct buf checkpoint; /* the last one */
};

bool sealing_new(const struct sealing_options *o, struct sealing **ret, struct err *err)
{
    struct sealing *s = xcalloc(1, sizeof(*s));

    (void)err;
    s->o = *o;
    buf_init(&s->checkpoint, FORMAT_CHECKPOINT_MAX);
    sealing_begin(s, 0, (struct slice){ 0 });
    *ret = s;
    return true;
}

void sealing_free(struct sealing *s)
{
    if (s) {
        buf_done(&s->checkpoint);
        free(s);
    }
}

void sealing_begin(struct sealing *s, uint64_t checkpoint_seq, struct slice checkpoint)
{
    buf_clear(&s->checkpoint);
    buf_add(&s->checkpoint, checkpoint);
    s->checkpoint_seq = checkpoint_seq;
    s->first_seq = checkpoint_seq > 0 ? checkpoint_seq : 1;
    s->last_seq = checkpoint_seq;
}

void sealing_add(struct sealing *s, const struct format_frame *f)
{
    if (f->type == RECORD_CHECKPOINT) {
        sealing_begin(s, f->seq, f->bytes);
    }
    s->last_seq = f->seq;
}

uint64_t sealing_last(const struct sealing *s, struct slice *ret_checkpoint)
{
    *ret_checkpoint = buf_slice(&s->checkpoint);
    return s->checkpoint_seq;
}

/* The record without root and signature: the ranges alone. */
bool sealing_make(struct sealing *s, uint64_t seq, int64_t now_us, struct buf *out, struct err *err)
{
    struct id id = id_new();
    char time[CLOCK_TEXT_SIZE];

    (void)err;
    (void)seq;
    clock_format(now_us, time);
    buf_addf(out, "{\"type\":\"checkpoint\",\"schema\":1,\"id\":\"%s\",\"collector\":", id.text);
    buf_add_json_string(out, slice_from_cstr(s->o.collector));
    buf_addf(out, ",\"time\":\"%s\",\"first_seq\":%" PRIu64 ",\"last_seq\":%" PRIu64 "}", time,
             s->first_seq, s->last_seq);
    return true;
}
