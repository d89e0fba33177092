/*
 * gpucommons-supervisor LEASE_DIR: owns the one process of one lease.
 *
 * The claim decides: whoever links LEASE_DIR/claim first has the lease, everybody else leaves at
 * once. The claim is complete when it appears, and its lock is held for as long as this process
 * lives, so a reader can tell a dead supervisor from a living one without trusting process ids.
 *
 * Files in LEASE_DIR: spec (read), stop (read once after the claim), claim, started, exit, log.
 * Records are lines of key=value, written under another name, fsynced and renamed. Times are
 * CLOCK_REALTIME and CLOCK_MONOTONIC in nanoseconds. After each record one datagram with the lease
 * id goes to the agent's socket; it may get lost.
 *
 * SIGTERM stops the job: SIGTERM to its process group, SIGKILL after the grace. The time limit does
 * the same. SIGINT stops it without any grace. Whatever the job left behind is killed before the
 * exit record appears.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    EXIT_USAGE = 64,
    EXIT_BAD_SPEC = 65,
    EXIT_CANNOT_CLAIM = 73,
    EXIT_CANNOT_RECORD = 74,
    RECORD_BYTES = 4096,
    LONGEST_PAUSE_MS = 250,
};

#define SPEC_BYTES_MAX (16L * 1024 * 1024)
#define NS_PER_MS 1000000
#define NS_PER_S 1000000000LL
#define NEVER INT64_MAX

struct spec {
    const char *lease;
    const char *work;
    const char *notify;
    bool switch_user;
    uid_t uid;
    gid_t gid;
    int64_t time_limit_ms; /* 0: none */
    int64_t grace_ms;
    char **argv;
    char **env;
};

struct moment {
    int64_t wall_ns;
    int64_t mono_ns;
};

/* What the child tells through a pipe that closes at exec. */
enum stage { STAGE_EXECUTING, STAGE_PREPARE, STAGE_USER, STAGE_WORK, STAGE_EXEC };

struct message {
    enum stage stage;
    int error;
    struct moment at;
};

static int64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

static struct moment moment_now(void)
{
    return (struct moment){clock_ns(CLOCK_REALTIME), clock_ns(CLOCK_MONOTONIC)};
}

/* Reads a whole file and ends it with NUL; the caller frees it. NULL and errno on failure. */
static char *read_file(const char *path, size_t *size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    size_t room = 16384, used = 0;
    char *text = malloc(room + 1);
    while (text != NULL) {
        ssize_t n = read(fd, text + used, room - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            free(text);
            text = NULL;
            break;
        }
        if (n == 0)
            break;
        used += (size_t)n;
        if (used < room)
            continue;
        if (room >= (size_t)SPEC_BYTES_MAX) {
            free(text);
            text = NULL;
            errno = EFBIG;
            break;
        }
        room *= 2;
        char *larger = realloc(text, room + 1);
        if (larger == NULL)
            free(text);
        text = larger;
    }
    int error = errno;
    close(fd);
    errno = error;
    if (text != NULL) {
        text[used] = '\0';
        *size = used;
    }
    return text;
}

/* -- the specification ------------------------------------------------------------------------ */

static bool parse_number(const char *text, int64_t max, int64_t *value)
{
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || number < 0 || number > max)
        return false;
    *value = number;
    return true;
}

static const char *value_of(const char *field, const char *key)
{
    size_t length = strlen(key);
    return strncmp(field, key, length) == 0 && field[length] == '=' ? field + length + 1 : NULL;
}

static bool parse_field(struct spec *spec, char *field, size_t *argc, size_t *envc)
{
    const char *value;
    int64_t number;
    if ((value = value_of(field, "argv")) != NULL) {
        spec->argv[(*argc)++] = field + (value - field);
    } else if ((value = value_of(field, "env")) != NULL) {
        spec->env[(*envc)++] = field + (value - field);
    } else if ((value = value_of(field, "lease")) != NULL) {
        spec->lease = value;
    } else if ((value = value_of(field, "work")) != NULL) {
        spec->work = value;
    } else if ((value = value_of(field, "notify")) != NULL) {
        spec->notify = value;
    } else if ((value = value_of(field, "uid")) != NULL) {
        if (!parse_number(value, UINT32_MAX - 1, &number))
            return false;
        spec->uid = (uid_t)number;
        spec->switch_user = true;
    } else if ((value = value_of(field, "gid")) != NULL) {
        if (!parse_number(value, UINT32_MAX - 1, &number))
            return false;
        spec->gid = (gid_t)number;
    } else if ((value = value_of(field, "time_limit_ms")) != NULL) {
        return parse_number(value, INT64_MAX / NS_PER_MS / 2, &spec->time_limit_ms);
    } else if ((value = value_of(field, "grace_ms")) != NULL) {
        return parse_number(value, INT64_MAX / NS_PER_MS / 2, &spec->grace_ms);
    }
    return true;
}

/* NUL-terminated key=value fields; argv and env repeat. The text lives as long as the process. */
static bool parse_spec(struct spec *spec, char *text, size_t size)
{
    size_t fields = 0, argc = 0, envc = 0;
    if (size == 0 || text[size - 1] != '\0')
        return false;
    for (size_t i = 0; i < size; i++)
        fields += text[i] == '\0';
    spec->argv = calloc(fields + 1, sizeof *spec->argv);
    spec->env = calloc(fields + 1, sizeof *spec->env);
    if (spec->argv == NULL || spec->env == NULL)
        return false;
    for (char *field = text; field < text + size; field += strlen(field) + 1)
        if (!parse_field(spec, field, &argc, &envc))
            return false;
    return argc > 0 && spec->lease != NULL && spec->work != NULL && spec->notify != NULL &&
           !(spec->switch_user && (spec->uid == 0 || spec->gid == 0));
}

/* -- records ---------------------------------------------------------------------------------- */

static bool write_all(int fd, const char *text, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, text, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        text += n;
        size -= (size_t)n;
    }
    return true;
}

static bool sync_folder(void)
{
    int fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool done = fsync(fd) == 0;
    close(fd);
    return done;
}

__attribute__((format(printf, 2, 3))) static bool write_record(const char *name,
                                                               const char *format, ...)
{
    char text[RECORD_BYTES], temporary[64];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (size < 0 || (size_t)size >= sizeof text)
        return false;
    snprintf(temporary, sizeof temporary, "%s.new", name);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool done = write_all(fd, text, (size_t)size) && fsync(fd) == 0;
    close(fd);
    return done && rename(temporary, name) == 0;
}

static void notify_agent(const struct spec *spec)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(spec->notify) >= sizeof address.sun_path)
        return;
    strcpy(address.sun_path, spec->notify);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    (void)sendto(fd, spec->lease, strlen(spec->lease), 0, (struct sockaddr *)&address,
                 sizeof address);
    close(fd);
}

/* Field 22 of /proc/<pid>/stat, in clock ticks since boot; 0 when it cannot be read. */
static uint64_t process_start(pid_t pid)
{
    char path[64];
    size_t size;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    char *text = read_file(path, &size);
    uint64_t start = 0;
    char *field = text != NULL ? strrchr(text, ')') : NULL;
    for (int number = 2; field != NULL && number < 22; number++)
        field = strchr(field + 1, ' ');
    if (field != NULL)
        start = strtoull(field + 1, NULL, 10);
    free(text);
    return start;
}

/*
 * Returns the claim's descriptor, whose lock lasts as long as this process; -1 with EEXIST when
 * somebody else has the lease.
 */
static int claim_lease(void)
{
    char name[64], text[256];
    size_t size;
    snprintf(name, sizeof name, "claim.%d", (int)getpid());
    char *boot = read_file("/proc/sys/kernel/random/boot_id", &size);
    int length = snprintf(text, sizeof text, "pid=%d\npid_start=%" PRIu64 "\nboot_id=%.36s\n",
                          (int)getpid(), process_start(getpid()), boot != NULL ? boot : "");
    free(boot);
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    bool done = flock(fd, LOCK_EX | LOCK_NB) == 0 && write_all(fd, text, (size_t)length) &&
                fsync(fd) == 0 && link(name, "claim") == 0;
    int error = errno;
    unlink(name);
    if (done && !sync_folder()) {
        error = errno;
        done = false;
    }
    if (!done) {
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

/* -- the job's process ------------------------------------------------------------------------ */

_Noreturn static void child_fails(int pipe_fd, enum stage stage)
{
    struct message message = {.stage = stage, .error = errno};
    (void)!write(pipe_fd, &message, sizeof message);
    _exit(127);
}

_Noreturn static void become_job(const struct spec *spec, int log_fd, int pipe_fd, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    if (sigprocmask(SIG_SETMASK, &none, NULL) != 0 || setsid() < 0 ||
        dup2(log_fd, STDOUT_FILENO) < 0 || dup2(log_fd, STDERR_FILENO) < 0)
        child_fails(pipe_fd, STAGE_PREPARE);
    umask(022);
    if (spec->switch_user &&
        (setgroups(0, NULL) != 0 || setgid(spec->gid) != 0 || setuid(spec->uid) != 0 ||
         prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0))
        child_fails(pipe_fd, STAGE_USER);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0)
        child_fails(pipe_fd, STAGE_PREPARE);
    if (getppid() != parent)
        _exit(127);
    if (chdir(spec->work) != 0)
        child_fails(pipe_fd, STAGE_WORK);
    environ = spec->env;
    struct message message = {.stage = STAGE_EXECUTING, .at = moment_now()};
    if (write(pipe_fd, &message, sizeof message) != (ssize_t)sizeof message)
        child_fails(pipe_fd, STAGE_PREPARE);
    execvp(spec->argv[0], spec->argv);
    child_fails(pipe_fd, STAGE_EXEC);
}

/* Reads the child's messages until exec or failure: last is the final one. False: child died. */
static bool read_outcome(int pipe_fd, struct message *last)
{
    bool any = false;
    struct message message;
    for (;;) {
        ssize_t n = read(pipe_fd, &message, sizeof message);
        if (n < 0 && errno == EINTR)
            continue;
        if (n != (ssize_t)sizeof message)
            return any;
        *last = message;
        any = true;
    }
}

/* -- the end ---------------------------------------------------------------------------------- */

static void kill_children(void)
{
    DIR *folder = opendir("/proc");
    if (folder == NULL)
        return;
    struct dirent *entry;
    while ((entry = readdir(folder)) != NULL) {
        int64_t pid;
        if (!parse_number(entry->d_name, INT_MAX, &pid) || pid < 2)
            continue;
        char path[64];
        size_t size;
        snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
        char *text = read_file(path, &size);
        char *field = text != NULL ? strrchr(text, ')') : NULL;
        if (field != NULL && strlen(field) > 4 && strtol(field + 4, NULL, 10) == getpid())
            kill((pid_t)pid, SIGKILL);
        free(text);
    }
    closedir(folder);
}

/* The job's user has no other processes than the job's: one call reaches even a fork bomb. */
static void kill_user(const struct spec *spec)
{
    pid_t helper = fork();
    if (helper != 0)
        return;
    if (setgroups(0, NULL) == 0 && setgid(spec->gid) == 0 && setuid(spec->uid) == 0)
        kill(-1, SIGKILL);
    _exit(0);
}

/* Returns when no descendant is left; as subreaper this process inherits all of them. */
static void kill_descendants(const struct spec *spec)
{
    sigset_t child_signal;
    sigemptyset(&child_signal);
    sigaddset(&child_signal, SIGCHLD);
    for (int64_t pause_ms = 1;; pause_ms = pause_ms < LONGEST_PAUSE_MS ? pause_ms * 2 : pause_ms) {
        pid_t pid;
        while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
            ;
        if (pid < 0 && errno == ECHILD)
            return;
        if (spec->switch_user)
            kill_user(spec);
        kill_children();
        struct timespec pause = {.tv_sec = 0, .tv_nsec = pause_ms * NS_PER_MS};
        sigtimedwait(&child_signal, NULL, &pause);
    }
}

static bool record_end(const struct spec *spec, const char *reason, struct moment at,
                       const char *detail)
{
    bool done = write_record("exit", "reason=%s\nwall_ns=%" PRId64 "\nmono_ns=%" PRId64 "\n%s",
                             reason, at.wall_ns, at.mono_ns, detail);
    notify_agent(spec);
    return done;
}

static bool record_failed_start(const struct spec *spec, enum stage stage, int error)
{
    static const char *const at[] = {"starting", "preparing the process", "switching the user",
                                     "entering the work folder", "cannot be executed"};
    bool not_found =
        stage == STAGE_EXEC &&
        (error == ENOENT || error == EACCES || error == ENOTDIR || error == EISDIR ||
         error == ENAMETOOLONG || error == ELOOP);
    char detail[256];
    snprintf(detail, sizeof detail, "detail=%s: %s\n", at[stage], strerror(error));
    return record_end(spec, not_found ? "command_not_found" : "start_failed", moment_now(),
                      detail);
}

/* Waits for one of the signals until the deadline (monotonic). Returns the signal, 0: deadline. */
static int wait_for_signal(const sigset_t *signals, int64_t deadline_ns)
{
    for (;;) {
        int64_t left = deadline_ns == NEVER ? 3600 * NS_PER_S
                                            : deadline_ns - clock_ns(CLOCK_MONOTONIC);
        if (left <= 0)
            return 0;
        struct timespec pause = {.tv_sec = left / NS_PER_S, .tv_nsec = left % NS_PER_S};
        int number = sigtimedwait(signals, NULL, &pause);
        if (number > 0)
            return number;
    }
}

static bool reap(pid_t child, int *status, struct moment *at)
{
    int any_status;
    pid_t pid;
    while ((pid = waitpid(-1, &any_status, WNOHANG)) > 0) {
        if (pid == child) {
            *at = moment_now();
            *status = any_status;
            return true;
        }
    }
    return false;
}

/* Waits for the child; stops it when told to or at the time limit. Returns the end's reason. */
static const char *watch(const struct spec *spec, pid_t child, int64_t started_ns,
                         const sigset_t *signals, int *status, struct moment *ended)
{
    const char *reason = NULL;
    int64_t deadline =
        spec->time_limit_ms > 0 ? started_ns + spec->time_limit_ms * NS_PER_MS : NEVER;
    for (;;) {
        int number = wait_for_signal(signals, deadline);
        if (reap(child, status, ended))
            return reason != NULL ? reason : WIFSIGNALED(*status) ? "signalled" : "exited";
        if (number == SIGCHLD)
            continue;
        bool first = reason == NULL;
        if (first)
            reason = number == 0 ? "time_limit" : "stopped";
        if (number == SIGINT || (first ? spec->grace_ms == 0 : number == 0)) {
            deadline = NEVER;
            kill(-child, SIGKILL);
        } else if (first) {
            deadline = clock_ns(CLOCK_MONOTONIC) + spec->grace_ms * NS_PER_MS;
            kill(-child, SIGTERM);
            kill(-child, SIGCONT);
        }
    }
}

static bool run_job(const struct spec *spec, const sigset_t *signals)
{
    int pipe_fds[2];
    int log_fd = open("log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (log_fd < 0 || pipe2(pipe_fds, O_CLOEXEC) != 0)
        return record_failed_start(spec, STAGE_PREPARE, errno);
    pid_t parent = getpid();
    pid_t child = fork();
    if (child < 0)
        return record_failed_start(spec, STAGE_PREPARE, errno);
    if (child == 0)
        become_job(spec, log_fd, pipe_fds[1], parent);
    close(log_fd);
    close(pipe_fds[1]);
    struct message last = {.stage = STAGE_PREPARE};
    bool told = read_outcome(pipe_fds[0], &last);
    close(pipe_fds[0]);
    if (!told || last.stage != STAGE_EXECUTING) {
        kill(child, SIGKILL);
        kill_descendants(spec);
        return record_failed_start(spec, last.stage, told ? last.error : ECHILD);
    }
    bool recorded = write_record("started",
                                 "pid=%d\npid_start=%" PRIu64 "\nwall_ns=%" PRId64
                                 "\nmono_ns=%" PRId64 "\n",
                                 (int)child, process_start(child), last.at.wall_ns,
                                 last.at.mono_ns);
    notify_agent(spec);
    int status = 0;
    struct moment ended;
    const char *reason = watch(spec, child, last.at.mono_ns, signals, &status, &ended);
    kill(-child, SIGKILL);
    kill_descendants(spec);
    char detail[32];
    if (WIFSIGNALED(status))
        snprintf(detail, sizeof detail, "signal=%d\n", WTERMSIG(status));
    else
        snprintf(detail, sizeof detail, "code=%d\n", WEXITSTATUS(status));
    return record_end(spec, reason, ended, detail) && recorded;
}

static bool detach(void)
{
    (void)setsid();
    int null_fd = open("/dev/null", O_RDWR);
    if (null_fd < 0)
        return false;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (dup2(null_fd, fd) < 0)
            return false;
    if (syscall(SYS_close_range, 3U, ~0U, 0U) != 0)
        for (long fd = sysconf(_SC_OPEN_MAX); fd > STDERR_FILENO; fd--)
            close((int)fd);
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: gpucommons-supervisor LEASE_DIR\n");
        return EXIT_USAGE;
    }
    umask(077);
    sigset_t all, signals;
    sigfillset(&all);
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigprocmask(SIG_SETMASK, &all, NULL);
    signal(SIGCHLD, SIG_DFL);

    struct spec spec = {0};
    size_t size = 0;
    char *text = chdir(argv[1]) == 0 ? read_file("spec", &size) : NULL;
    if (text == NULL || !parse_spec(&spec, text, size)) {
        fprintf(stderr, "gpucommons-supervisor: no usable spec in %s\n", argv[1]);
        return EXIT_BAD_SPEC;
    }
    if (!detach())
        return EXIT_CANNOT_CLAIM;
    if (claim_lease() < 0)
        return errno == EEXIST ? EXIT_SUCCESS : EXIT_CANNOT_CLAIM;
    if (access("stop", F_OK) == 0)
        return record_end(&spec, "never_started", moment_now(), "") ? EXIT_SUCCESS
                                                                    : EXIT_CANNOT_RECORD;
    return run_job(&spec, &signals) ? EXIT_SUCCESS : EXIT_CANNOT_RECORD;
}
