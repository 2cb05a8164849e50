package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"syscall"
)

// programs runs the programs of PostgreSQL as the server's account, in DataDir.
type programs struct {
	layout  layout
	account account
	named   string // Options.BinDir
	log     *slog.Logger

	bin binaries // the last choice
}

// checkAccount returns an error if the server's account cannot enter the data directory.
func (p *programs) checkAccount(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", ":")
	cmd.Dir = p.layout.dir
	cmd.SysProcAttr = p.account.attributes()
	err := cmd.Run()
	if err == nil {
		return nil
	}
	if barrier := p.account.barrier(p.layout.dir); barrier != "" {
		return fmt.Errorf("user %s, who runs PostgreSQL, cannot enter %s: choose a data directory outside it, "+
			"or allow entering it (chmod o+x)", p.account.name, barrier)
	}
	return fmt.Errorf("run a program in %s as user %s, who runs PostgreSQL: %w", p.layout.dir, p.account.name, cause(ctx, err))
}

// command returns a command that runs a program of the server as its account, in DataDir, without the user's PG variables and locale. When
// the context ends, the program and its children are killed.
func (p *programs) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.bin.program(name), args...)
	cmd.Dir = p.layout.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "LANG=C"}
	if path, ok := os.LookupEnv("LD_LIBRARY_PATH"); ok {
		cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+path)
	}
	cmd.SysProcAttr = p.account.attributes()
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}
