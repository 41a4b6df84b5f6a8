/* serve: another program chooses the hyperparameters of a study. It asks for trials and is told what comes of them, in lines
 * of JSON; the protocol is in dt-tune(1). */
#ifndef DT_SERVE_H
#define DT_SERVE_H

#include "tuner/tuner.h"

struct dt_serve;
/* Requests come from in_fd, answers go to out_fd; neither is closed, and neither is ever waited for. A byte is written to
 * wake_fd (non-blocking; -1: none) when there may be a request. */
struct dt_serve *dt_serve_new(int in_fd, int out_fd, int wake_fd, struct dt_error *e);
/* The first line: the study's folder is `dir`. */
void dt_serve_hello(struct dt_serve *v, const char *dir);
/* Takes requests until one is an event for the study's journal: 1; 0: there is none now. All others are answered at once. Sets
 * s->no_more at the end of input, at {"end": true}, and where nobody reads the answers. */
int dt_serve_request(struct dt_serve *v, struct dt_study *s, struct dt_event *ev);
/* Tells what has happened, after the study has taken it into its state. */
void dt_serve_event(struct dt_serve *v, const struct dt_study *s, const struct dt_event *ev);
/* The last lines: what was asked for and got no trial, and why the study ended: its own reason or, with `error`, that.
 * `s` may be NULL. */
void dt_serve_finish(struct dt_serve *v, const struct dt_study *s, const char *error);
/* Waits for the answers to be read, unless for `patience` seconds none is or *stop is set. */
void dt_serve_free(struct dt_serve *v, double patience, const volatile int *stop);

#endif
