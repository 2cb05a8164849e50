package preflight

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/internal/cluster"
	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/database"
	"github.com/kuberewind/kuberewind/internal/redact"
	"github.com/kuberewind/kuberewind/migrations"
)

// Check tries everything that a recorder needs. It changes nothing in the cluster and in the database, and makes neither an embedded database
// nor a redaction key. If an existing embedded database does not run, Check starts it and stops it at the end.
func Check(ctx context.Context, cfg config.Config, log *slog.Logger) Report {
	c := &checker{cfg: cfg, log: log, report: Report{OK: true}}
	c.checkCluster(ctx)
	c.checkDatabase(ctx)
	c.checkKey()
	if err := c.close(); err != nil {
		c.note("close", "", err)
	}
	return c.report
}

func (c *checker) close() error {
	var err error
	if c.database != nil {
		err = c.database.Close()
	}
	if c.cluster != nil {
		c.cluster.Close()
	}
	return err
}

func (c *checker) checkCluster(ctx context.Context) {
	var err error
	if c.cluster, err = cluster.Connect(ctx, c.cfg, c.log); err != nil {
		c.note("cluster", "", err)
		return
	}
	c.uid = c.cluster.UID
	c.note("cluster", fmt.Sprintf("%s at %s, uid %s", c.cluster.Name, c.cluster.Client.Host(), c.uid), nil)
	if c.filter, err = c.cfg.Filter(); err != nil {
		c.note("filter", "", err)
		return
	}
	discovery, err := c.cluster.Client.Discover(ctx, nil)
	if err != nil {
		c.note("discovery", "", err)
		return
	}
	for _, gv := range slices.SortedFunc(maps.Keys(discovery.Failed), func(a, b schema.GroupVersion) int { return strings.Compare(a.String(), b.String()) }) {
		c.note("discovery", "", fmt.Errorf("%s: %w", gv, discovery.Failed[gv]))
	}
	c.checkAccess(ctx, discovery)
	c.checkElection(ctx)
	c.checkEvents(ctx)
}

func (c *checker) checkDatabase(ctx context.Context) {
	const what = "database"
	detail, err := c.tryDatabase(ctx)
	if errors.Is(err, database.ErrNoRecord) {
		c.note(what, "embedded, will be made at the first start in "+database.Folder(c.cfg), nil)
		return
	}
	c.note(what, detail, err)
}

func (c *checker) tryDatabase(ctx context.Context) (detail string, err error) {
	if c.database, err = database.OpenRecord(ctx, c.cfg, c.log); err != nil {
		return "", err
	}
	conn, err := c.database.Connect(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if err := migrations.Check(ctx, conn); err != nil {
		return "", err
	}
	version, err := checkWritable(ctx, conn)
	if err != nil {
		return "", err
	}
	if c.key, err = database.KeyOf(ctx, conn, c.uid); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s: PostgreSQL %s, schema version %d, may be written", c.cfg.Masked().Database, version, migrations.Latest()), nil
}

// checkWritable returns an error if the server is read-only or the login may not write. Else it returns the version of the server.
func checkWritable(ctx context.Context, conn *pgx.Conn) (version string, err error) {
	var readOnly, login string
	var may bool
	err = conn.QueryRow(ctx, `SELECT current_setting('server_version'), current_setting('transaction_read_only'), current_user::text,
		has_table_privilege('kuberewind.deltas_data', 'INSERT')`).Scan(&version, &readOnly, &login, &may)
	switch {
	case err != nil:
		return "", err
	case readOnly == "on":
		return "", errors.New("the server is read-only")
	case !may:
		return "", fmt.Errorf("this login may not write; let an administrator run: GRANT %s TO %s", migrations.WriterRole, pgx.Identifier{login}.Sanitize())
	}
	return version, nil
}

// checkKey compares the redaction key with the one on record. checkDatabase must run before, because it reads that.
func (c *checker) checkKey() {
	const what = "redaction key"
	path := c.cfg.KeyFile()
	file, err := redact.ReadKey(path)
	key := file.Of(c.uid)
	switch {
	case errors.Is(err, fs.ErrNotExist) && c.key == nil:
		c.note(what, path+", will be made at the first start", nil)
	case errors.Is(err, fs.ErrNotExist):
		c.note(what, "", fmt.Errorf("%s does not exist, and this cluster was recorded with a key (fingerprint %x): restore the file, or name it with --redaction-key-file", path, c.key))
	case err == nil && c.key != nil && !bytes.Equal(c.key, key.Fingerprint()):
		c.note(what, "", fmt.Errorf("%s is another key (fingerprint %x); this cluster was recorded with a key of fingerprint %x: name the file of that key with --redaction-key-file", path, key.Fingerprint(), c.key))
	default:
		c.note(what, path, err)
	}
}
