package recorder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/kuberewind/kuberewind/internal/cluster"
	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/database"
	"github.com/kuberewind/kuberewind/internal/election"
	"github.com/kuberewind/kuberewind/internal/filter"
	"github.com/kuberewind/kuberewind/internal/notices"
	"github.com/kuberewind/kuberewind/internal/reporting"
	"github.com/kuberewind/kuberewind/internal/telemetry"
)

// surroundings are the parts that a recorder opens before it opens the record. A standby has the same parts.
type surroundings struct {
	cfg       config.Config
	log       *slog.Logger
	metrics   *telemetry.Metrics
	rules     *filter.Filter
	cluster   *cluster.Cluster
	identity  *cluster.Identity
	database  *database.Database
	notices   *notices.Notices
	server    *server // nil if --listen is empty
	readiness readiness
	unlock    func() error
}

// open connects to the cluster and the database. After an error, close closes the parts that open has made.
func (e *surroundings) open(ctx context.Context) (err error) {
	if e.rules, err = e.cfg.Filter(); err != nil {
		return err
	}
	if e.cluster, err = cluster.Connect(ctx, e.cfg, e.log); err != nil {
		return err
	}
	uid := e.cluster.UID
	e.identity = cluster.NewIdentity(e.cluster.Client.Host(), uid, e.cluster.Client.ClusterUID, e.log)
	if e.database, err = database.Open(ctx, e.cfg, e.log); err != nil {
		return err
	}
	if e.unlock, err = e.database.Lock(uid); err != nil {
		return err
	}
	// Listen before the election. Else a recorder that cannot listen could take over from the leader and then end.
	if e.server, err = listen(e.cfg.Listen, e.metrics, e.readiness.state, e.log); err != nil {
		return err
	}
	publisher, err := e.cluster.Publisher(ctx)
	if err != nil {
		return err
	}
	e.notices = notices.New(publisher)
	if _, err := os.Stat(e.spoolDir()); err == nil {
		// A recorder has recorded this cluster from this data directory. So the address of the database was correct once, and an outage is
		// the likely cause if it does not answer.
		return e.database.Await(ctx)
	}
	return nil
}

// spoolDir returns the directory of the cluster's spool.
func (e *surroundings) spoolDir() string { return filepath.Join(e.cfg.Spool(), e.cluster.UID) }

// close closes the parts that open has made.
func (e *surroundings) close() (err error) {
	e.notices.Close()
	e.server.close()
	if e.unlock != nil {
		err = e.unlock()
	}
	if e.database != nil {
		err = errors.Join(err, e.database.Close())
	}
	if e.cluster != nil {
		e.cluster.Close()
	}
	return err
}

// standBy reports, once, that another recorder leads.
func (e *surroundings) standBy(leader string) {
	if !e.readiness.standby.Swap(true) {
		e.log.Info("standby: another recorder records this cluster", "leader", leader)
		e.notices.Normal("Standby", fmt.Sprintf("%s stands by: %s records", election.Name(), leader))
	}
}

func (e *surroundings) reporter() *reporting.Reporter {
	return &reporting.Reporter{Metrics: e.metrics, Log: e.log, Notices: e.notices, Missed: e.database.Missed}
}
