/*
 * Heat in a square plate by Jacobi iteration, the rows shared among the MPI ranks: a job without
 * any machine learning whose number of tasks can be tuned all the same. The work is fixed, so more
 * ranks each do less of it, and exchange their outermost rows with their neighbours in every step.
 *
 *     heat_mpi [ROWS COLUMNS STEPS]
 */
#include "dt_tune.h"

#include <errno.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINES = 10 /* progress lines of a run */
};

struct plate {
    int rows, cols; /* of the whole plate, without its fixed edge */
    int mine;       /* rows of this rank */
    int first;      /* the first of them, counted in the whole plate */
    int up, down;   /* neighbours, or MPI_PROC_NULL at the edge */
    double *now, *next;
};

/* Ends all ranks: an error that only one of them sees must not leave the others waiting. */
static void die(const char *what, const char *where)
{
    fprintf(stderr, "heat_mpi: %s%s%s\n", what, where ? ": " : "", where ? where : "");
    MPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

/* ROWS COLUMNS STEPS, or their defaults if there are no arguments. All ranks see the same ones. */
static bool read_sizes(int argc, char **argv, int sizes[3])
{
    if (argc != 1 && argc != 4)
        return false;
    for (int i = 1; i < argc; i++) {
        char *end;
        errno = 0;
        long n = strtol(argv[i], &end, 10);
        if (errno || end == argv[i] || *end || n < 1 || n > 1000000)
            return false;
        sizes[i - 1] = (int)n;
    }
    return true;
}

static size_t at(const struct plate *p, int row, int col)
{
    return (size_t)row * ((size_t)p->cols + 2) + (size_t)col;
}

/* The rows of rank are share(rank) up to share(rank + 1). */
static int share(int rows, int rank, int size)
{
    return (int)((long)rows * rank / size);
}

static void plate_init(struct plate *p, int rows, int cols, int rank, int size)
{
    p->rows = rows;
    p->cols = cols;
    p->first = share(rows, rank, size);
    p->mine = share(rows, rank + 1, size) - p->first;
    p->up = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    p->down = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;

    size_t cells = ((size_t)p->mine + 2) * ((size_t)cols + 2);
    p->now = calloc(cells, sizeof(*p->now));
    p->next = calloc(cells, sizeof(*p->next));
    if (!p->now || !p->next)
        die("not enough memory for the plate; use more ranks or fewer rows", NULL);
    if (rank == 0) /* the upper edge is hot, the other three stay at 0 */
        for (int c = 0; c < cols + 2; c++)
            p->now[at(p, 0, c)] = p->next[at(p, 0, c)] = 100.0;
}

static void exchange_halo(struct plate *p)
{
    MPI_Sendrecv(&p->now[at(p, 1, 0)], p->cols + 2, MPI_DOUBLE, p->up, 0,
                 &p->now[at(p, p->mine + 1, 0)], p->cols + 2, MPI_DOUBLE, p->down, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(&p->now[at(p, p->mine, 0)], p->cols + 2, MPI_DOUBLE, p->down, 1,
                 &p->now[at(p, 0, 0)], p->cols + 2, MPI_DOUBLE, p->up, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

static void step(struct plate *p)
{
    exchange_halo(p);
    for (int r = 1; r <= p->mine; r++) {
        const double *above = &p->now[at(p, r - 1, 0)];
        const double *here = &p->now[at(p, r, 0)];
        const double *below = &p->now[at(p, r + 1, 0)];
        double *out = &p->next[at(p, r, 0)];
        for (int c = 1; c <= p->cols; c++)
            out[c] = 0.25 * (above[c] + below[c] + here[c - 1] + here[c + 1]);
    }
    double *swap = p->now;
    p->now = p->next;
    p->next = swap;
}

/*
 * The mean temperature on rank 0. Row sums are added up in the order of the rows there, so that the
 * result is the same to the last bit for any number of ranks.
 */
static double checksum(const struct plate *p, int rank, int size)
{
    double *sums = calloc((size_t)p->mine, sizeof(*sums));
    double *all = calloc((size_t)p->rows, sizeof(*all));
    int *counts = calloc((size_t)size, sizeof(*counts));
    int *starts = calloc((size_t)size, sizeof(*starts));
    if (!sums || !all || !counts || !starts)
        die("not enough memory for the checksum", NULL);
    for (int r = 1; r <= p->mine; r++)
        for (int c = 1; c <= p->cols; c++)
            sums[r - 1] += p->now[at(p, r, c)];
    for (int i = 0; i < size; i++) {
        starts[i] = share(p->rows, i, size);
        counts[i] = share(p->rows, i + 1, size) - starts[i];
    }
    MPI_Gatherv(sums, p->mine, MPI_DOUBLE, all, counts, starts, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    double total = 0;
    for (int r = 0; rank == 0 && r < p->rows; r++)
        total += all[r];
    free(sums);
    free(all);
    free(counts);
    free(starts);
    return total / p->rows / p->cols;
}

static void report(int steps, double seconds, double sum)
{
    if (dt_report(3, "step", (double)steps, "steps_per_s", steps / seconds, "checksum", sum) < 0)
        die("the metrics cannot be written", strerror(errno));
}

/* Runs all steps; the time of the slowest rank in seconds, on rank 0. */
static double iterate(struct plate *p, int steps, int rank)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime(), last = start, slowest = 0;
    for (int i = 1, shown = 0; i <= steps; i++) {
        step(p);
        if (rank == 0 && (long)i * LINES / steps > (long)(i - 1) * LINES / steps) {
            double now = MPI_Wtime();
            printf("step %d: %.3f ms a step\n", i, 1e3 * (now - last) / (i - shown));
            fflush(stdout);
            last = now;
            shown = i;
        }
    }
    double mine = MPI_Wtime() - start;
    MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    return slowest;
}

/* A srun that speaks another PMI than this MPI starts N programs of one rank, each doing all the
 * work. */
static void check_size(int size)
{
    const char *tasks = getenv("SLURM_STEP_NUM_TASKS");
    if (size == 1 && tasks && atoi(tasks) > 1)
        die("srun started several tasks, but each is alone; choose srun's --mpi=TYPE for this MPI "
            "(see srun --mpi=list)",
            NULL);
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    check_size(size);

    int sizes[3] = {1200, 1200, 1500};
    if (!read_sizes(argc, argv, sizes) || size > sizes[0]) {
        if (rank == 0)
            fputs("usage: heat_mpi [ROWS COLUMNS STEPS], numbers from 1 to 1000000, "
                  "with at least as many ROWS as ranks\n",
                  stderr);
        MPI_Finalize();
        return 2;
    }
    int rows = sizes[0], cols = sizes[1], steps = sizes[2];

    struct plate p;
    plate_init(&p, rows, cols, rank, size);
    double seconds = iterate(&p, steps, rank);
    double sum = checksum(&p, rank, size);
    if (rank == 0) {
        printf("%d ranks, %d x %d cells, %d steps: %.3f s, checksum %.12g\n", size, rows, cols,
               steps, seconds, sum);
        report(steps, seconds, sum);
    }
    free(p.now);
    free(p.next);
    MPI_Finalize();
    return 0;
}
