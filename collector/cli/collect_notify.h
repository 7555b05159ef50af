/* collect_notify: tell systemd how far a role is, where it asks for it (sd_notify's datagram). */
#pragma once

/* `state`, e.g. "READY=1"; does nothing without $NOTIFY_SOCKET, and never waits. */
void notify_state(const char *state);
