/* why_steps: the eight steps of one case, and what they come to. */
#pragma once

#include "queries/why_case.h"

/* Fill w->steps. */
void why_steps(const struct why_case *c, struct why *w);

/* Fill w->verdict and w->advice from the steps: the first that fails is the answer. */
void why_verdict(const struct why_case *c, struct why *w);
