package checkpoint

import (
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Options are the options of a Maker. Zero values mean the defaults.
type Options struct {
	// EveryDeltas is the number of deltas between two checkpoints; 0 means Interval.
	EveryDeltas int64
	// CheckEvery is how often Run checks whether a checkpoint is due; 0 means a minute.
	CheckEvery time.Duration
	// Busy is the share of the time in which MakeOne works; 0 means half. At 1 it does not rest.
	Busy float64
	// Hold reports whether the recorder is storing living objects again under new redaction rules. A checkpoint must wait
	// for that, because it would copy the old texts. Nil means never.
	Hold func() bool
	// Log receives the errors that Run cannot return; nil discards them.
	Log *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// A Maker makes the checkpoints of a cluster, and deletes those before the record's first day. It needs one connection that
// may read the record, and insert into and delete from checkpoints and checkpoint_blocks. The writer's role may do that.
type Maker struct {
	pool    *pgxpool.Pool
	cluster int32
	source  Source
	options Options
}

// Session is the application name of a Maker's session in pg_stat_activity. It is idle in transaction while the Maker
// rests.
const Session = "kuberewind checkpoints"

// NewMaker returns a Maker for the cluster with that number. It uses the caller's pool, which the caller closes.
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

// ErrNothingNew says that a checkpoint of the last seq exists already, or that another Maker made it meanwhile.
var ErrNothingNew = errors.New("a checkpoint of this seq exists already")
