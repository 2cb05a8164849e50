// Package target finds the target of an erasure: the one cluster of the record, its redaction key, and its spooled deltas.
//
// It refuses the erasure while deltas wait in the spool that a recorder will write: they would bring the value back, or be lost. It starts
// no goroutine and has no knobs.
package target

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/deltafifo/spool"
	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/erasure"
	"github.com/kuberewind/kuberewind/internal/redact"
	"github.com/kuberewind/kuberewind/internal/spooling"
)

// Find sets the cluster and its key in the options. It returns the paths of spooled deltas that no recorder will write.
func Find(ctx context.Context, conn *pgx.Conn, cfg config.Config, o *erasure.Options) (kept []string, err error) {
	rows, err := conn.Query(ctx, `SELECT cluster, uid, name, key_fingerprint FROM kuberewind.clusters WHERE $1 IN ('', name) ORDER BY name`, cfg.ClusterName)
	if err != nil {
		return nil, err
	}
	var names []string
	var name, uid string
	var fingerprint []byte
	if _, err = pgx.ForEachRow(rows, []any{&o.Cluster, &uid, &name, &fingerprint}, func() error {
		names = append(names, name)
		return nil
	}); err != nil {
		return nil, err
	}
	switch len(names) {
	case 0:
		return nil, errors.New("the record holds no such cluster")
	case 1:
	default:
		return nil, fmt.Errorf("the record holds several clusters (%s): name one with --cluster-name", strings.Join(names, ", "))
	}
	file, err := redact.ReadKey(cfg.KeyFile())
	if err != nil {
		return nil, err
	}
	key := file.Of(uid)
	if !bytes.Equal(key.Fingerprint(), fingerprint) {
		return nil, fmt.Errorf("cluster %s was recorded with another redaction key than %s: name the key of the recorder with --redaction-key-file", name, cfg.KeyFile())
	}
	o.Keyed = func(text []byte) []byte { return key.Sum("erasure", text) }
	return keptInSpool(ctx, conn, filepath.Join(cfg.Spool(), uid), uid, fingerprint)
}

// keptInSpool returns the paths of files in a spool's folder that no recorder will write. It returns an error if deltas wait that a recorder
// will write: they would bring the value back, or be lost.
func keptInSpool(ctx context.Context, conn *pgx.Conn, dir, uid string, fingerprint []byte) (kept []string, err error) {
	left, err := spooling.HasLeftovers(ctx, conn, dir, uid, fingerprint)
	if errors.Is(err, spooling.ErrWaits) {
		err = fmt.Errorf("%w. They may hold the value: let it write them first, until kuberewind_spool_entries is 0", err)
		if !errors.Is(err, spool.ErrLocked) {
			aside := filepath.Join(dir, spool.AsidePrefix+"by-hand")
			err = fmt.Errorf("%w. If no recorder will run here again, set them aside: mkdir -p %[2]s && mv %[3]s/*.seg %[2]s/ (deltas that the API server no longer has become a gap)", err, aside, dir)
		}
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read whether deltas in the spool hold the value; run this as the recorder's user: %w", err)
	}
	c, err := spool.Inspect(dir)
	if left {
		kept = append(kept, filepath.Join(dir, "*.seg"))
	}
	return append(kept, c.Aside...), err
}
