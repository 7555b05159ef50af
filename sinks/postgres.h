/*
 * postgres: records into PostgreSQL, each exactly once.
 *
 * Rows, roll-ups and the journal's position move in one transaction; a COMMIT
 * whose answer was lost is resolved by reading the position after connecting anew.
 * Settings: dsn, retention_days.
 */
#pragma once

#include "sinks/sink.h"

extern const struct sink_ops sink_postgres_ops;
