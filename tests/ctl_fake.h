/* SPDX-License-Identifier: MIT */
/*
 * A daemon that is only figures: what ctl's tests, and its fuzzer, put behind
 * the control socket.
 */
#ifndef UZ_TESTS_CTL_FAKE_H
#define UZ_TESTS_CTL_FAKE_H

#include <pthread.h>

#include "ctl/ctl.h"

#define CTL_FAKE_DEVICES_MAX 4

struct ctl_fake {
	/* Set before the server starts, constant afterwards. */
	struct ctl_daemon daemon;
	unsigned device_count;
	struct ctl_device devices[CTL_FAKE_DEVICES_MAX];

	pthread_mutex_t mutex; /* guards all below */
	pthread_cond_t changed;
	bool hold;  /* long operations wait until this is false */
	int result; /* of the next operation, when it is not 0 */
	const char *error_text;
	unsigned running; /* long operations that have begun and not ended */
	unsigned most_running;
	uint64_t delay_ns;   /* that the daemon's snapshot takes */
	unsigned calls;	     /* changes that were asked for */
	char last_call[256]; /* "set swap0 codec zstd" */
	unsigned reports;    /* progress reports that a long operation makes */
};

/* Two devices with figures that add up, all different from each other. */
void ctl_fake_init(struct ctl_fake *fake);
void ctl_fake_done(struct ctl_fake *fake);

/* Takes one device's pages away: nothing is stored in it. */
void ctl_fake_empty(struct ctl_device *device);

/* Long operations wait (true), or go on. */
void ctl_fake_hold(struct ctl_fake *fake, bool hold);

/*
 * What the next operations do: their result, its explanation (or NULL), how often they
 * report.
 */
void ctl_fake_script(struct ctl_fake *fake, int result, const char *error_text,
		     unsigned reports);

/* Snapshots of the daemon take so long from now on: the thread that asks is busy. */
void ctl_fake_delay(struct ctl_fake *fake, uint64_t ns);

/* The largest number of long operations that ran at the same time. */
unsigned ctl_fake_most_running(struct ctl_fake *fake);

/* Waits until `count` long operations run; returns false after five seconds. */
bool ctl_fake_wait_running(struct ctl_fake *fake, unsigned count);

/* What the operations have seen so far. */
unsigned ctl_fake_calls(struct ctl_fake *fake, char ret_last_call[256]);

/* The context is a struct ctl_fake. */
extern const struct ctl_ops ctl_fake_ops;

#endif
