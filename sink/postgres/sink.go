package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kuberewind/kuberewind/internal/chain"
)

// Config says which cluster is recorded, in which database, and by whom.
type Config struct {
	// Pool is a pool that NewPool made. If it is nil, Open makes one for URL, and Close closes it.
	Pool *pgxpool.Pool
	// URL is the database of the record, in any form that libpq takes.
	URL string

	// ClusterUID identifies the cluster: the UID of its namespace kube-system.
	ClusterUID string
	// ClusterName is the cluster's name in the record. If the record has another name for the cluster, Open changes it.
	ClusterName string
	// KeyFingerprint is the fingerprint of the key that hides the values of Secrets (I9).
	KeyFingerprint []byte

	// Recorder names this process, such as host and process number.
	Recorder string
	// Version is the version of the program.
	Version string
	// ConfigJSON is its configuration, with no secrets in it. Empty means {}.
	ConfigJSON []byte

	// Patience is the time after which Commit cancels an attempt and retries. Zero means one minute.
	Patience time.Duration
	// Logger receives what no caller gets as an error. Nil discards it.
	Logger *slog.Logger
	// Hooks report what the sink does.
	Hooks Hooks
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

const defaultPatience = time.Minute

// Info holds what Open found.
type Info struct {
	Cluster  int32
	Epoch    int64
	AfterSeq int64     // seq of the last delta before this writer
	Observed time.Time // observed_at of the last commit before it, or when the cluster was registered
	Verified time.Time // samples of everything observed before then were compared with etcd again (Batch.SetVerified)
	Started  time.Time // when this writer took over: see RecordPause
	Resumed  bool      // whether the cluster was recorded before
	Config   []byte    // ConfigJSON of the previous writer, nil if there was none
	Head     []byte    // digest of the last batch; it identifies this state of the record
	Offset   Offset    // of the spool that the last commit noted
}

// A Sink writes the record of one cluster, as its only writer.
type Sink struct {
	cfg     Config
	ownPool bool
	info    Info
	tenure  tenure
	streams streams
	served  served
	sweeps  sweeps

	encoder   encoder   // belongs to the goroutine that calls Encode
	committer committer // belongs to the goroutine that calls Commit
	spare     spares    // committed batches, whose memory is used again
	committed atomic.Int64
}

// Open takes over a cluster. It registers the cluster if it is new, and begins an epoch, so that the commits of any
// earlier writer fail. It waits up to a minute for the transaction of an earlier writer to end.
//
// The error is ErrKeyMismatch, ErrNameTaken, one of migrations.ErrMissing, ErrUnreleased, ErrOlder and ErrNewer, or an
// error of the database. ClassOf says whether a retry may help.
func Open(ctx context.Context, cfg Config) (*Sink, error) {
	s, err := newSink(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := s.open(ctx, s.cfg.Pool); err != nil {
		s.Close()
		return nil, fmt.Errorf("open the record of cluster %q: %w", cfg.ClusterName, explain(err))
	}
	return s, nil
}

func newSink(ctx context.Context, cfg Config) (*Sink, error) {
	if cfg.ClusterUID == "" || cfg.ClusterName == "" {
		return nil, errors.New("the cluster to be recorded has no UID or no name")
	}
	if cfg.KeyFingerprint == nil {
		cfg.KeyFingerprint = []byte{}
	}
	if len(cfg.ConfigJSON) == 0 {
		cfg.ConfigJSON = []byte("{}")
	}
	if cfg.Patience == 0 {
		cfg.Patience = defaultPatience
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	ownPool := cfg.Pool == nil
	if ownPool {
		pool, err := NewPool(ctx, cfg.URL, SessionName)
		if err != nil {
			return nil, err
		}
		cfg.Pool = pool
	}
	s := &Sink{cfg: cfg, ownPool: ownPool, spare: make(spares, 2)}
	s.streams = streams{
		tenure: &s.tenure, now: cfg.Now, log: cfg.Logger.With("cluster", cfg.ClusterName), unfolded: cfg.Hooks.Unfolded,
		byID: make(map[int32]*Stream), byKey: make(map[streamKey]*Stream),
	}
	s.served = served{tenure: &s.tenure, now: cfg.Now, last: make(map[string]serverState)}
	digester := chain.New()
	s.encoder = encoder{
		chain: digester, now: cfg.Now, hooks: cfg.Hooks,
		drafts: drafts{chain: digester, mismatch: cfg.Hooks.Mismatch, latest: make(map[objectKey]*draft)},
	}
	s.committer = committer{
		pool: cfg.Pool, patience: cfg.Patience, now: cfg.Now, retrying: cfg.Hooks.Retrying,
		partitions: partitions{pool: cfg.Pool, now: cfg.Now, log: cfg.Logger},
	}
	return s, nil
}

// Info returns what Open found.
func (s *Sink) Info() Info { return s.info }

// Close closes the pool if Open made it. It must not be called while another method runs.
func (s *Sink) Close() {
	if s.ownPool {
		s.cfg.Pool.Close()
	}
}

// spares are empty batches with memory.
type spares chan *Batch

// take returns an empty batch, with the memory of a committed batch if there is one.
func (s spares) take() *Batch {
	select {
	case b := <-s:
		b.reset()
		return b
	default:
		return new(Batch)
	}
}

func (s spares) keep(b *Batch) {
	select {
	case s <- b:
	default:
	}
}
