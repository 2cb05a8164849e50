package chaos_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/embedded"
	"github.com/kuberewind/kuberewind/internal/pgtest"
)

// slowWrites is a library that delays each write and each flush of a program by 20 ms while a file exists.
const slowWrites = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static void wait_if_slow(void) { if (access(SLOW, F_OK) == 0) usleep(20000); }

#define NEXT(name) static __typeof__(name) *next; if (!next) next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

ssize_t pwrite(int fd, const void *data, size_t n, off_t at) { NEXT(pwrite); wait_if_slow(); return next(fd, data, n, at); }
ssize_t pwrite64(int fd, const void *data, size_t n, off64_t at) { NEXT(pwrite64); wait_if_slow(); return next(fd, data, n, at); }
int fsync(int fd) { NEXT(fsync); wait_if_slow(); return next(fd); }
int fdatasync(int fd) { NEXT(fdatasync); wait_if_slow(); return next(fd); }
`

// noCompiler returns why the disk cannot be made slow, or "".
func noCompiler() string {
	if _, err := exec.LookPath("cc"); err != nil {
		return "there is no C compiler"
	}
	return ""
}

// slowDisk makes servers slow that pgtest starts from now on. They are slow while the returned file exists.
func slowDisk(t *testing.T) (slow string) {
	t.Helper()
	// As root, the servers run under another account, which cannot enter the test's own folder.
	dir, err := os.MkdirTemp("", "kuberewind-slow-disk-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	slow = filepath.Join(dir, "slow")
	source, library := filepath.Join(dir, "slow.c"), filepath.Join(dir, "slow.so")
	require.NoError(t, os.WriteFile(source, []byte(slowWrites), 0o600))
	out, err := exec.CommandContext(t.Context(), "cc", "-shared", "-fPIC", fmt.Sprintf("-DSLOW=%q", slow), "-o", library, source, "-ldl").CombinedOutput()
	require.NoError(t, err, "%s", out)

	var programs string
	conn := pgtest.StartServer(t).New(t, nil).Connect(t)
	require.NoError(t, conn.QueryRow(t.Context(), `SELECT setting FROM pg_config WHERE name = 'BINDIR'`).Scan(&programs))
	found, err := os.ReadDir(programs)
	require.NoError(t, err)
	for _, program := range found {
		script := fmt.Sprintf("#!/bin/sh\nLD_PRELOAD=%s exec %s \"$@\"\n", library, filepath.Join(programs, program.Name()))
		require.NoError(t, os.WriteFile(filepath.Join(dir, program.Name()), []byte(script), 0o755))
	}
	t.Setenv(embedded.BinDirEnv, dir)
	return slow
}
