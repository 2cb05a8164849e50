package database

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/internal/config"
)

// PSQL returns a command that runs psql on the record. The caller wires its input and output and starts it.
func (d *Database) PSQL(ctx context.Context, args ...string) (*exec.Cmd, error) {
	if d.embedded != nil {
		return d.embedded.PSQL(ctx, args...)
	}
	path, err := exec.LookPath("psql")
	if err != nil {
		return nil, fmt.Errorf("psql is not on PATH; install PostgreSQL's client: %w", err)
	}
	settings, err := pgx.ParseConfig(d.url)
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", config.MaskURL(d.url), config.Plain(err))
	}
	cmd := exec.CommandContext(ctx, path, append([]string{"--dbname=" + forLibpq(d.url)}, args...)...)
	if settings.Password != "" {
		// The password goes into the environment, because everyone on the machine can read the arguments.
		cmd.Env = append(cmd.Environ(), "PGPASSWORD="+settings.Password)
	}
	return cmd, nil
}

// notForLibpq matches parameters that psql must not get: passwords, and parameters that only the recorder's driver knows.
const notForLibpq = `(?:(?:ssl)?password|pool_\w+|default_query_exec_mode|(?:statement|description)_cache_capacity)`

var (
	userPassword     = regexp.MustCompile(`(://[^:/?#@]*):.*@`)
	foreignParameter = regexp.MustCompile(`(?i)^` + notForLibpq + `=`)
	foreignKeyword   = regexp.MustCompile(`(?i)(^|\s)` + notForLibpq + `\s*=\s*('(?:[^'\\]|\\.)*'|(?:\\.|\S)+)`)
)

// forLibpq returns the URL or keyword string without the parameters that psql must not get.
func forLibpq(database string) string {
	if !strings.Contains(database, "://") {
		return foreignKeyword.ReplaceAllString(database, "$1")
	}
	address, query, _ := strings.Cut(userPassword.ReplaceAllString(database, "$1@"), "?")
	var kept []string
	for parameter := range strings.SplitSeq(query, "&") {
		if parameter != "" && !foreignParameter.MatchString(parameter) {
			kept = append(kept, parameter)
		}
	}
	if len(kept) == 0 {
		return address
	}
	return address + "?" + strings.Join(kept, "&")
}
