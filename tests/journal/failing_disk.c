/* A disk that fails on demand. Loaded before all others (LD_PRELOAD), it counts what a process does to files
 * under DISK_FOLDER: writes, truncations, fsyncs, renames, removals, new files and folders. disk_arm(n, how, stay)
 * lets the n-th of them fail:
 *
 *   1 ENOSPC, 2 EIO       once, or from then on until disk_arm(0, 0, 0) if `stay`
 *   3 a short write       half of it is written
 *   4 kill                the process ends before it
 *   5 power cut           the process ends before it, and all that was not synced is undone: bytes of files
 *                         without an fsync, names of files without an fsync of their folder
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FULL = 1, BROKEN, SHORT, KILL, POWER };
static long count, at;
static int how, stays, fired;
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;

/* what a power cut undoes, newest last */
struct undo {
    enum { BYTES, CREATED, RENAMED, REMOVED, FOLDER } kind;
    dev_t dev; ino_t ino; int fd;           /* BYTES */
    off_t offset, size; size_t length; char *old;
    char path[PATH_MAX], from[PATH_MAX], saved[PATH_MAX];
};
static struct undo *undos[1 << 18];
static int n_undos, n_saved;

#define REAL(type, name, ...) static type (*real)(__VA_ARGS__); \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

static const char *folder(void) { return getenv("DISK_FOLDER"); }

static int ours(const char *path) {
    const char *root = folder();
    return root && path && strncmp(path, root, strlen(root)) == 0;
}

static int path_of(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, PATH_MAX - 1);
    if (n < 0) return 0;
    path[n] = 0;
    return ours(path);
}

static void whole(const char *path, char *out) {
    if (path[0] == '/') { snprintf(out, PATH_MAX, "%s", path); return; }
    char here[PATH_MAX];
    if (!getcwd(here, sizeof here)) here[0] = 0;
    snprintf(out, PATH_MAX, "%.2000s/%.2000s", here, path);
}

static void undo_all(void) {
    for (int i = n_undos - 1; i >= 0; i--) {
        struct undo *u = undos[i];
        if (!u) continue;
        if (u->kind == BYTES) {
            REAL(ssize_t, "pwrite64", int, const void *, size_t, off_t);
            if (u->length && real(u->fd, u->old, u->length, u->offset) < 0) {}
            static int (*cut)(int, off_t);
            if (!cut) cut = (int (*)(int, off_t))dlsym(RTLD_NEXT, "ftruncate64");
            if (cut(u->fd, u->size)) {}
        } else {
            static int (*mv)(const char *, const char *), (*rm)(const char *), (*rmd)(const char *);
            if (!mv) mv = (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");
            if (!rm) rm = (int (*)(const char *))dlsym(RTLD_NEXT, "unlink");
            if (!rmd) rmd = (int (*)(const char *))dlsym(RTLD_NEXT, "rmdir");
            if (u->kind == CREATED) rm(u->path);
            if (u->kind == FOLDER) rmd(u->path);
            if (u->kind == RENAMED) { mv(u->path, u->from); if (u->saved[0]) mv(u->saved, u->path); }
            if (u->kind == REMOVED && u->saved[0]) mv(u->saved, u->path);
        }
    }
}

/* Whether the operation at hand is to fail; does not return if the process is to end. */
static int fails(void) {
    if (!folder()) return 0;
    count++;
    if (!at || count < at || (count > at && !stays)) return 0;
    fired = 1;
    if (how == POWER) undo_all();
    if (how == KILL || how == POWER) _exit(137);
    return how;
}

static struct undo *note(int kind) {
    struct undo *u = calloc(1, sizeof *u);
    u->kind = kind;
    undos[n_undos++] = u;
    return u;
}

static void note_bytes(int fd, off_t offset, size_t length) {
    if (how != POWER) return;
    char link[64];
    struct stat now;
    struct undo *u = note(BYTES);
    fstat(fd, &now);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    REAL(int, "open64", const char *, int, ...);
    u->fd = real(link, O_RDWR);
    u->dev = now.st_dev; u->ino = now.st_ino; u->offset = offset; u->size = now.st_size;
    u->old = malloc(length + 1);
    ssize_t got = u->fd < 0 ? 0 : pread(u->fd, u->old, length, offset);
    u->length = got > 0 ? got : 0;
}

static void save(const char *path, struct undo *u) {
    static int (*ln)(const char *, const char *);
    if (!ln) ln = (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "link");
    snprintf(u->saved, PATH_MAX, "%.3000s.saved.%d", folder(), n_saved++);
    if (ln(path, u->saved)) u->saved[0] = 0;
}

static void synced(int fd) {
    struct stat now;
    char path[PATH_MAX];
    fstat(fd, &now);
    path_of(fd, path);
    for (int i = 0; i < n_undos; i++) {
        struct undo *u = undos[i];
        if (!u) continue;
        char copy[PATH_MAX];
        if (u->kind == BYTES) {
            if (u->dev != now.st_dev || u->ino != now.st_ino) continue;
            if (u->fd >= 0) close(u->fd);
        } else {
            snprintf(copy, sizeof copy, "%s", u->path);
            if (strcmp(dirname(copy), path)) continue;
        }
        free(u->old); free(u); undos[i] = NULL;
    }
}

void disk_arm(long n, int what, int stay) { at = n ? count + n : 0; how = what; stays = stay; if (n) fired = 0; }
long disk_count(void) { return count; }
int disk_fired(void) { return fired; }

#define LOCKED(type, work) pthread_mutex_lock(&one); type result; { work } pthread_mutex_unlock(&one); return result
#define ERROR(code) { errno = (code) == FULL ? ENOSPC : EIO; result = -1; }

static ssize_t writes(int fd, const void *data, size_t length, off_t offset, int placed) {
    static ssize_t (*at_place)(int, const void *, size_t, off_t), (*plain)(int, const void *, size_t);
    if (!at_place) at_place = (ssize_t (*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite64");
    if (!plain) plain = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    char path[PATH_MAX];
    if (!folder() || !path_of(fd, path)) return placed ? at_place(fd, data, length, offset) : plain(fd, data, length);
    LOCKED(ssize_t,
        int bad = fails();
        if (bad && bad != SHORT) ERROR(bad)
        else {
            size_t part = bad == SHORT && length > 1 ? length / 2 : length;
            note_bytes(fd, placed ? offset : lseek(fd, 0, SEEK_CUR), part);
            result = placed ? at_place(fd, data, part, offset) : plain(fd, data, part);
        });
}
ssize_t write(int fd, const void *data, size_t n) { return writes(fd, data, n, 0, 0); }
ssize_t pwrite(int fd, const void *data, size_t n, off_t o) { return writes(fd, data, n, o, 1); }
ssize_t pwrite64(int fd, const void *data, size_t n, off_t o) { return writes(fd, data, n, o, 1); }

static int cuts(int fd, off_t size) {
    REAL(int, "ftruncate64", int, off_t);
    char path[PATH_MAX];
    if (!folder() || !path_of(fd, path) || strstr(path, "-shm")) return real(fd, size);
    LOCKED(int,
        int bad = fails();
        if (bad) ERROR(bad)
        else {
            struct stat now;
            fstat(fd, &now);
            note_bytes(fd, size, now.st_size > size ? now.st_size - size : 0);
            result = real(fd, size);
        });
}
int ftruncate(int fd, off_t size) { return cuts(fd, size); }
int ftruncate64(int fd, off_t size) { return cuts(fd, size); }

static int syncs(int fd, const char *name) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    char path[PATH_MAX];
    if (!folder() || !path_of(fd, path)) return real(fd);
    LOCKED(int,
        int bad = fails();
        if (bad) ERROR(bad)
        else { result = real(fd); synced(fd); });
}
int fsync(int fd) { return syncs(fd, "fsync"); }
int fdatasync(int fd) { return syncs(fd, "fdatasync"); }

int rename(const char *from, const char *to) {
    REAL(int, "rename", const char *, const char *);
    char a[PATH_MAX], b[PATH_MAX];
    whole(from, a); whole(to, b);
    if (!ours(b)) return real(from, to);
    LOCKED(int,
        int bad = fails();
        if (bad) ERROR(bad)
        else {
            if (how == POWER) {
                struct undo *u = note(RENAMED);
                snprintf(u->from, PATH_MAX, "%s", a); snprintf(u->path, PATH_MAX, "%s", b);
                save(b, u);
            }
            result = real(from, to);
        });
}

int unlink(const char *path) {
    REAL(int, "unlink", const char *);
    char a[PATH_MAX];
    whole(path, a);
    if (!ours(a) || strstr(a, "-shm") || access(a, F_OK)) return real(path);
    LOCKED(int,
        int bad = fails();
        if (bad) ERROR(bad)
        else {
            if (how == POWER) { struct undo *u = note(REMOVED); snprintf(u->path, PATH_MAX, "%s", a); save(a, u); }
            result = real(path);
        });
}

int mkdir(const char *path, mode_t mode) {
    REAL(int, "mkdir", const char *, mode_t);
    char a[PATH_MAX];
    whole(path, a);
    if (!ours(a) || !access(a, F_OK)) return real(path, mode);
    LOCKED(int,
        int bad = fails();
        if (bad) ERROR(bad)
        else {
            if (how == POWER) { struct undo *u = note(FOLDER); snprintf(u->path, PATH_MAX, "%s", a); }
            result = real(path, mode);
        });
}

static int opens(const char *path, int flags, mode_t mode) {
    REAL(int, "open64", const char *, int, ...);
    char a[PATH_MAX];
    whole(path, a);
    if (!(flags & O_CREAT) || !ours(a) || strstr(a, "-shm") || !access(a, F_OK)) return real(path, flags, mode);
    LOCKED(int,
        int bad = fails();
        if (bad) ERROR(bad)
        else {
            if (how == POWER) { struct undo *u = note(CREATED); snprintf(u->path, PATH_MAX, "%s", a); }
            result = real(path, flags, mode);
        });
}
#define MODE mode_t mode = 0; if (flags & O_CREAT) { va_list l; va_start(l, flags); mode = va_arg(l, mode_t); va_end(l); }
int open(const char *path, int flags, ...) { MODE return opens(path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE return opens(path, flags, mode); }
