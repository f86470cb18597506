/* Stands in for an OSU micro-benchmark: takes its options and prints what it would, with invented times. Installed as
 * osu_bcast, osu_reduce, ... it reads the fault that it plays from the environment variable STANDIN_osu_bcast, ...
 *
 *   (nothing)    a healthy benchmark
 *   truncated    the output ends in the middle of a line; exit code 0
 *   short        the largest size is missing; exit code 0
 *   wrong_data   where it validates, it fails at the second size; exit code 1
 *   silent_data  the same, with exit code 0
 *   unvalidated  it ignores that it is to validate
 *   iterations   it runs half of the repetitions that it was asked for
 *   foreign      it prints the table of another benchmark
 *   twice        it prints its table twice
 *   noise        a library writes of an error between two rows
 *   crash        the last rank dies of SIGSEGV after the table was printed
 *   lost_rank    the last rank leaves before MPI_Finalize, with exit code 0, after the table was printed
 *   no_finalize  every rank leaves before MPI_Finalize, with exit code 0
 *   exit         returns 9 after all went well
 *   hang         never ends
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const titles[][2] = {
    {"osu_latency", "Latency"},
    {"osu_bcast", "Broadcast Latency"},
    {"osu_scatter", "Scatter Latency"},
    {"osu_gather", "Gather Latency"},
    {"osu_allgather", "Allgather Latency"},
    {"osu_alltoall", "All-to-All Personalized Exchange Latency"},
    {"osu_reduce", "Reduce Latency"},
    {"osu_allreduce", "Allreduce Latency"},
    {"osu_reduce_scatter", "Reduce_scatter Latency"},
};

static const char *fault;
static int full, validates, tails;
static long least, most, iterations;

static int is(const char *name)
{
    return strcmp(fault, name) == 0;
}

static const char *title_of(const char *name)
{
    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++)
        if (strcmp(titles[i][0], name) == 0)
            return titles[i][1];
    return "Unknown";
}

static void read_options(int argc, char **argv)
{
    for (int letter; (letter = getopt(argc, argv, "fcz::u:T:m:i:x:")) != -1;) {
        full |= letter == 'f';
        validates |= letter == 'c';
        tails |= letter == 'z';
        if (letter == 'm')
            sscanf(optarg, "%ld:%ld", &least, &most);
        if (letter == 'i')
            iterations = atol(optarg);
    }
    validates &= !is("unvalidated");
    iterations /= is("iterations") ? 2 : 1;
}

static void print_header(const char *title)
{
    printf("\n# OSU MPI %s Test v7.4\n# Datatype: MPI_FLOAT.\n# Size       Avg Latency(us)", title);
    printf("%s%s", full ? "   Min Latency(us)   Max Latency(us)  Iterations" : "", validates ? "        Validation" : "");
    printf("%s\n", tails ? "  P25 Tail Lat(us)" : "");
}

/* False where the program ends because its data is wrong. */
static int print_row(long size)
{
    int right = !validates || size == least || !(is("wrong_data") || is("silent_data"));
    if (is("noise") && size > least)
        printf("[vm:4711] error: a component does not know what to do\n");
    if (is("truncated") && 2 * size > most)
        return printf("%-10ld      12.", size);
    printf("%-10ld%18.2f", size, 12.34);
    if (full)
        printf("%18.2f%18.2f%12ld", 10.0, 14.5, iterations);
    if (validates)
        printf("%18s", right ? "Pass" : "Fail");
    if (tails)
        printf("%18.2f", 12.0);
    printf("\n");
    return right;
}

static int print_table(const char *name)
{
    print_header(title_of(is("foreign") ? "osu_latency" : name));
    long last = is("short") ? most / 2 : most;
    for (long size = least; size <= last; size *= 2)
        if (!print_row(size)) {
            printf("DATA VALIDATION ERROR: %s exited with status 1 on message size %ld.\n", name, size);
            return is("silent_data") ? 0 : 1;
        }
    return 0;
}

static void leave_early(int rank, int size)
{
    MPI_Barrier(MPI_COMM_WORLD); /* the table is out */
    if (rank == size - 1 && is("crash"))
        raise(SIGSEGV);
    if (rank == size - 1 && is("lost_rank"))
        _exit(0);
    if (is("no_finalize"))
        _exit(0);
    while (is("hang"))
        sleep(1);
}

int main(int argc, char **argv)
{
    char variable[64];
    const char *slash = strrchr(argv[0], '/'), *name = slash != NULL ? slash + 1 : argv[0];
    int rank, size, code = 0;
    snprintf(variable, sizeof variable, "STANDIN_%s", name);
    fault = getenv(variable) != NULL ? getenv(variable) : "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    read_options(argc, argv);
    if (rank == 0)
        code = print_table(name);
    if (rank == 0 && is("twice"))
        print_table(name);
    fflush(stdout);
    MPI_Bcast(&code, 1, MPI_INT, 0, MPI_COMM_WORLD);
    leave_early(rank, size);
    MPI_Finalize();
    return is("exit") ? 9 : code;
}
