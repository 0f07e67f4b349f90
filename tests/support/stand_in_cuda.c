/* What a driver's cuInit does that a confined process is kept from, as it's known of libcuda of drivers 570 and 580. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

enum { SUCCESS = 0, OPERATING_SYSTEM = 304 };

static pthread_barrier_t named;

static void *serve(void *number) {
    *(long *)number = syscall(SYS_gettid);
    pthread_barrier_wait(&named);
    pthread_barrier_wait(&named);
    return NULL;
}

/* A thread, and its name, given by another. */
static int name_a_thread(void) {
    pthread_t thread;
    long number = 0;
    char path[64];
    pthread_barrier_init(&named, NULL, 2);
    if (pthread_create(&thread, NULL, serve, &number)) return 0;
    pthread_barrier_wait(&named);
    snprintf(path, sizeof path, "/proc/self/task/%ld/comm", number);
    FILE *comm = fopen(path, "w");
    int written = comm && fputs("cuda00001400006", comm) >= 0;
    if (comm && fclose(comm)) written = 0;
    pthread_barrier_wait(&named);
    pthread_join(thread, NULL);
    return written;
}

/* By which other processes ask for the descriptor of unified memory. */
static int wait_for_others(void) {
    int on = 1, waiting = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "cuda-uvmfd-stand-in-%d", getpid());
    return waiting >= 0 && !setsockopt(waiting, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) &&
           !bind(waiting, (struct sockaddr *)&address, offsetof(struct sockaddr_un, sun_path) + 1 + length) &&
           !listen(waiting, 16);
}

int cuInit(unsigned flags) {
    (void)flags;
    if (memfd_create("cuda", MFD_CLOEXEC) < 0) return OPERATING_SYSTEM;
    return wait_for_others() && name_a_thread() ? SUCCESS : OPERATING_SYSTEM;
}
