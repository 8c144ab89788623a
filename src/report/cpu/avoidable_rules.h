/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of the section of avoidable costs: for each cost a rule, which says what it is a share of, from
 * which share on it is worth a sentence, and the sentence. analyses/cpu/avoidable.h has the steps
 * to add one.
 */
#pragma once

#include "analyses/cpu/avoidable.h"
#include "base/strbuf.h"

/* What a cost is a share of. */
enum avoidable_base {
	AVOIDABLE_OF_CPU_TIME,
	AVOIDABLE_OF_WANTED, /* CPU time, and the cost itself: waiting for what it takes to run */
	AVOIDABLE_OF_DURATION,
};

/* What a recording must have; bits. */
enum avoidable_needs {
	AVOIDABLE_NEEDS_WAITING = 1, /* threads that wait are sampled */
	AVOIDABLE_NEEDS_CPUS = 2,    /* more than one */
};

/* A rule and what was found of it. */
struct avoidable_finding {
	const struct avoidable_rule *rule;
	const struct model *model;
	const struct avoidable_uses *uses;
	const struct avoidable_use *use;
	uint64_t time_ns;
	double share; /* NaN: of nothing */
};

struct avoidable_rule {
	const char *id;
	unsigned needs; /* enum avoidable_needs */
	enum avoidable_base base;
	double min_share;
	uint64_t min_ns;
	/* More that must hold; NULL: nothing. */
	bool (*holds)(const struct avoidable_finding *finding);
	/* What a change saves at most; NULL: all of it. */
	uint64_t (*saves_ns)(const struct avoidable_finding *finding);
	bool is_of_line;  /* share and time are of the heaviest line alone */
	bool has_leaf;    /* name the innermost function */
	bool has_line;    /* and the line that leads there */
	const char *what; /* "is malloc and free": after the share */
	/* In place of the share and `what`; NULL: those. */
	void (*say)(const struct avoidable_finding *finding, struct strbuf *text);
	const char *help, *docs;
};

/* By enum avoidable. */
extern const struct avoidable_rule avoidable_rules[AVOIDABLE_MAX];

struct avoidable_finding avoidable_find(
	const struct model *model, const struct avoidable_uses *uses, enum avoidable cost);
const char *avoidable_base_name(enum avoidable_base base);
/* Is it worth a sentence? */
bool avoidable_is_large(const struct avoidable_finding *finding);
uint64_t avoidable_saves_ns(const struct avoidable_finding *finding);
void avoidable_say(const struct avoidable_finding *finding, struct strbuf *text);
