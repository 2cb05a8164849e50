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

// surroundings are what a recorder has before it opens the record, and what a standby has.
type surroundings struct {
	cfg       config.Config
	log       *slog.Logger
	metrics   *telemetry.Metrics
	rules     *filter.Filter
	cluster   *cluster.Cluster
	identity  *cluster.Identity
	database  *database.Database
	notices   *notices.Notices
	server    *server // nil if nothing is to be served
	readiness readiness
	unlock    func() error
}

// open connects to the cluster and the database. What was made before an error is closed by close.
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
	// Before the election: one that could not listen would end, and have ended the recorder before it.
	if e.server, err = listen(e.cfg.Listen, e.metrics, e.readiness.state, e.log); err != nil {
		return err
	}
	publisher, err := e.cluster.Publisher(ctx)
	if err != nil {
		return err
	}
	e.notices = notices.New(publisher)
	if _, err := os.Stat(e.spoolDir()); err == nil {
		// A recorder has recorded the cluster from this data directory: what it was told of the database was right once.
		return e.database.Await(ctx)
	}
	return nil
}

// spoolDir is where the spool of the cluster lies.
func (e *surroundings) spoolDir() string { return filepath.Join(e.cfg.Spool(), e.cluster.UID) }

// close gives back what open took, as far as it came.
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

// standBy says once that another recorder leads.
func (e *surroundings) standBy(leader string) {
	if !e.readiness.standby.Swap(true) {
		e.log.Info("standby: another recorder records this cluster", "leader", leader)
		e.notices.Normal("Standby", fmt.Sprintf("%s stands by: %s records", election.Name(), leader))
	}
}

func (e *surroundings) reporter() *reporting.Reporter {
	return &reporting.Reporter{Metrics: e.metrics, Log: e.log, Notices: e.notices, Missed: e.database.Missed}
}
