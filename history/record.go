package history

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kuberewind/kuberewind/checkpoint"
	"github.com/kuberewind/kuberewind/internal/pgdial"
	"github.com/kuberewind/kuberewind/migrations"
)

var (
	// ErrNoCluster says that the record holds no cluster, or none with the given name.
	ErrNoCluster = errors.New("the record holds no such cluster")
	// ErrManyClusters says that the record holds several clusters and none was named.
	ErrManyClusters = errors.New("the record holds several clusters")
	// ErrEmpty says that nothing of the cluster has been recorded yet.
	ErrEmpty = errors.New("nothing is recorded yet")
)

// Options select the record that Open opens.
type Options struct {
	Cluster string       // name of the cluster; "" if the record holds only one
	Log     *slog.Logger // nil discards all messages
}

// A Cluster is a cluster whose record the database holds.
type Cluster struct {
	Number int32
	Name   string
	UID    string // UID of its namespace kube-system
}

// A Record is the record of one cluster. Several goroutines may call its methods at once.
type Record struct {
	view *view // through the pool
	log  *slog.Logger
}

// Open opens the record at a PostgreSQL URL. The error is ErrNoCluster, ErrManyClusters, one of migrations.ErrMissing,
// ErrUnreleased, ErrOlder and ErrNewer, or an error of the database.
func Open(ctx context.Context, url string, o Options) (*Record, error) {
	pool, err := newPool(ctx, url)
	if err != nil {
		return nil, err
	}
	r, err := open(ctx, pool, o)
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("open the record: %w", err)
	}
	return r, nil
}

func open(ctx context.Context, pool *pgxpool.Pool, o Options) (*Record, error) {
	if err := migrations.Check(ctx, pool); err != nil {
		return nil, err
	}
	found, err := clusters(ctx, pool)
	if err != nil {
		return nil, err
	}
	cluster, err := chosen(found, o.Cluster)
	if err != nil {
		return nil, err
	}
	return newRecord(pool, cluster, o.Log), nil
}

func newRecord(pool *pgxpool.Pool, cluster Cluster, log *slog.Logger) *Record {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Record{view: newView(pool, cluster), log: log}
}

// Of returns the record of a cluster, read through the caller's pool. The caller closes the pool. Of does not check the
// schema.
func Of(pool *pgxpool.Pool, cluster Cluster) *Record { return newRecord(pool, cluster, nil) }

func chosen(found []Cluster, name string) (Cluster, error) {
	names := make([]string, len(found))
	for i, c := range found {
		if c.Name == name {
			return c, nil
		}
		names[i] = c.Name
	}
	switch {
	case len(found) == 0:
		return Cluster{}, fmt.Errorf("%w: it is empty; \"recorder run\" records into it", ErrNoCluster)
	case name != "":
		return Cluster{}, fmt.Errorf("%w: %q; it holds %s", ErrNoCluster, name, strings.Join(names, ", "))
	case len(found) > 1:
		return Cluster{}, fmt.Errorf("%w: name one of %s", ErrManyClusters, strings.Join(names, ", "))
	}
	return found[0], nil
}

// newPool returns a pool whose connections only read, and plan each statement for its actual parameters. A generic plan
// would have to include every partition. A query fails if its server is gone, but not because it takes long.
func newPool(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := pgdial.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("the URL of the database: %w", err)
	}
	parameters := config.ConnConfig.RuntimeParams
	parameters["default_transaction_read_only"] = "on"
	prepareSession(parameters)
	config.BeforeConnect = func(_ context.Context, config *pgx.ConnConfig) error {
		pgdial.AskInSilence(config)
		return nil
	}
	return pgxpool.NewWithConfig(ctx, config)
}

func prepareSession(parameters map[string]string) {
	parameters["plan_cache_mode"] = "force_custom_plan"
	// The queries are many and short: compiling them takes longer than running them.
	parameters["jit"] = "off"
	parameters["timezone"] = "UTC"
	if parameters["application_name"] == "" {
		parameters["application_name"] = "kuberewind history"
	}
}

// Close closes the connections to the database. It must not be called while another method runs.
func (r *Record) Close() { r.view.pool.Close() }

// Cluster returns the cluster of the record.
func (r *Record) Cluster() Cluster { return r.view.cluster }

// Pool returns the pool that the record is read through. The pool of Open only reads; Of uses the pool of its caller.
func (r *Record) Pool() *pgxpool.Pool { return r.view.pool }

// Clusters lists the clusters of a database, by name.
func Clusters(ctx context.Context, url string) ([]Cluster, error) {
	pool, err := newPool(ctx, url)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	if err := migrations.Check(ctx, pool); err != nil {
		return nil, fmt.Errorf("list the clusters of the record: %w", err)
	}
	return clusters(ctx, pool)
}

func clusters(ctx context.Context, db querier) ([]Cluster, error) {
	rows, err := db.Query(ctx, `SELECT cluster, name, uid FROM kuberewind.record_clusters ORDER BY name`)
	if err != nil {
		return nil, fmt.Errorf("list the clusters of the record: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (c Cluster, err error) {
		return c, row.Scan(&c.Number, &c.Name, &c.UID)
	})
}

// An Extent is the range of seqs and times that a record covers.
type Extent struct {
	FirstSeq, LastSeq int64
	FirstAt           time.Time // observed_at of the first delta
	LastAt            time.Time // observed_at of the last commit, which may have no deltas: the recorder was watching until then

	// The state of every object is known from WholeSeq and WholeAt on. They name the first delta. If earlier days were
	// dropped (Pruned), they name the first complete sweep after them.
	WholeSeq int64
	WholeAt  time.Time
	Pruned   bool
}

// Extent returns the range that the record covers. FirstSeq is 0 if nothing is recorded yet.
func (r *Record) Extent(ctx context.Context) (Extent, error) { return r.view.extent(ctx) }

// Checkpoints lists the checkpoints of the record, newest first.
func (r *Record) Checkpoints(ctx context.Context) ([]checkpoint.Info, error) {
	return r.view.checkpoints().List(ctx, maxSeq, maxSeq)
}

func isNoRows(err error) bool { return errors.Is(err, pgx.ErrNoRows) }
