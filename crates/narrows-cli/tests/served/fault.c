/* Makes writes fail while a file says so: its text is the error's number. For tests only. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

static int fault(void) {
  const char *name = getenv("NARROWS_TEST_FAULT");
  FILE *file = name ? fopen(name, "r") : NULL;
  int number = 0;
  if (!file) return 0;
  if (fscanf(file, "%d", &number) != 1) number = 0;
  fclose(file);
  return number;
}

#define FAIL_OR(kind, name, args, call)                                    \
  kind name args {                                                         \
    static kind(*real) args;                                               \
    int number = fault();                                                  \
    if (number) { errno = number; return -1; }                             \
    if (!real) real = (kind(*) args)dlsym(RTLD_NEXT, #name);               \
    return real call;                                                      \
  }

FAIL_OR(ssize_t, pwrite, (int fd, const void *buf, size_t n, off_t at), (fd, buf, n, at))
FAIL_OR(ssize_t, pwrite64, (int fd, const void *buf, size_t n, off64_t at), (fd, buf, n, at))
FAIL_OR(int, fdatasync, (int fd), (fd))
