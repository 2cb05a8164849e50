package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Options of a Maker. Zero values mean the defaults.
type Options struct {
	// EveryDeltas is after how many deltas the next checkpoint is made. 0 means Interval.
	EveryDeltas int64
	// CheckEvery is how often Run looks whether one is due; 0 means a minute.
	CheckEvery time.Duration
	// Busy is which part of the time MakeOne may work, while it makes blocks; 0 means half. 1 is without a rest.
	Busy float64
	// Hold says that living objects are being stored anew. A checkpoint has to wait, since it would copy texts from before the new
	// rules of redaction. Nil: nothing is.
	Hold func() bool
	// Log gets the errors that Run cannot return; nil means none.
	Log *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// A Maker makes the checkpoints of a cluster, and drops those before the record's first day. It needs one connection
// that may read the record and may insert into and delete from checkpoints and checkpoint_blocks: the writer's role.
type Maker struct {
	pool    *pgxpool.Pool
	cluster int32
	source  Source
	options Options
}

// Session is what the session of a recorder's Maker is called in pg_stat_activity. It is idle in transaction while it rests.
const Session = "kuberewind checkpoints"

// NewMaker makes a Maker for the cluster of that number. It works through a pool of its owner's.
func NewMaker(pool *pgxpool.Pool, cluster int32, source Source, o Options) *Maker {
	if o.CheckEvery == 0 {
		o.CheckEvery = time.Minute
	}
	if o.Busy <= 0 || o.Busy > 1 {
		o.Busy = 0.5
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Hold == nil {
		o.Hold = func() bool { return false }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Maker{pool: pool, cluster: cluster, source: source, options: o}
}

// Run makes a checkpoint whenever one is due, until ctx ends, which is no error. A failure is logged, and tried again later:
// without checkpoints nothing is wrong, only slower.
func (m *Maker) Run(ctx context.Context) error {
	ticker := time.NewTicker(m.options.CheckEvery)
	defer ticker.Stop()
	for {
		if err := m.makeDue(ctx); err != nil && ctx.Err() == nil {
			m.options.Log.WarnContext(ctx, "no checkpoint was made; rebuilding takes longer until one is", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (m *Maker) makeDue(ctx context.Context) error {
	due, err := m.Due(ctx)
	if err != nil || !due {
		return err
	}
	if m.options.Hold() {
		m.options.Log.DebugContext(ctx, "a checkpoint is due, and waits until what lives is stored anew")
		return nil
	}
	info, err := m.MakeOne(ctx)
	if errors.Is(err, ErrNothingNew) {
		return nil // Two recorders, for as long as one of them does not know yet that the other has taken over.
	}
	if err != nil {
		return err
	}
	m.options.Log.InfoContext(ctx, "made a checkpoint", "seq", info.Seq, "objects", info.Objects, "blocks", info.Blocks, "bytes", info.Bytes)
	return m.Prune(ctx)
}

// Due reports whether enough deltas came since the last checkpoint.
func (m *Maker) Due(ctx context.Context) (bool, error) {
	var since, live int64
	err := m.pool.QueryRow(ctx, `
		SELECT h.seq - coalesce(p.checkpoint, 0), coalesce(p.objects, 0)
		FROM kuberewind.record_heads h
		LEFT JOIN LATERAL (
			SELECT checkpoint, objects FROM kuberewind.record_checkpoints WHERE cluster = h.cluster ORDER BY checkpoint DESC LIMIT 1
		) p ON true
		WHERE h.cluster = $1`, m.cluster).Scan(&since, &live)
	if err != nil {
		return false, fmt.Errorf("look whether a checkpoint is due: %w", err)
	}
	every := m.options.EveryDeltas
	if every == 0 {
		every = Interval(live)
	}
	return since >= every, nil
}

// ErrNothingNew says that there is a checkpoint at the end of the record already, or that another has made it meanwhile.
var ErrNothingNew = errors.New("there is a checkpoint of this seq already")

// MakeOne makes a checkpoint of the end of the record, from the newest usable one and the deltas after it. Everything is read
// back and compared before the checkpoint is announced, in the one transaction that holds all of it. The error is
// ErrNothingNew, one of the Source's, or one of the database's.
func (m *Maker) MakeOne(ctx context.Context) (info Info, err error) {
	err = pgx.BeginTxFunc(ctx, m.pool, pgx.TxOptions{BeginQuery: beginMaking}, func(tx pgx.Tx) error {
		one := &making{
			maker: m, store: Store{DB: tx, Cluster: m.cluster}, tx: tx, encoder: newEncoder(), copied: make(map[int32]bool),
		}
		info, err = one.run(ctx)
		return err
	})
	var refusal *pgconn.PgError
	if errors.As(err, &refusal) && refusal.Code == pgerrcode.UniqueViolation {
		err = ErrNothingNew
	}
	if err != nil {
		return Info{}, fmt.Errorf("make a checkpoint: %w", err)
	}
	return info, nil
}

// Prune deletes the checkpoints from before the oldest day of the record: nothing can be rebuilt there. All others are kept, since between two of them every
// rebuild would take longer.
func (m *Maker) Prune(ctx context.Context) error {
	err := pgx.BeginFunc(ctx, m.pool, func(tx pgx.Tx) error {
		var first *int64 // once: a day may be dropped between the statements
		if err := tx.QueryRow(ctx, `SELECT min(first_seq) FROM kuberewind.record_days WHERE cluster = $1`, m.cluster).Scan(&first); err != nil {
			return err
		}
		for _, table := range []string{"checkpoints", "checkpoint_blocks"} {
			_, err := tx.Exec(ctx, `DELETE FROM kuberewind.`+table+` WHERE cluster = $1 AND checkpoint < $2`, m.cluster, first)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("drop old checkpoints: %w", err)
	}
	return nil
}
