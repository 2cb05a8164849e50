package checkpoint

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// A Source reads the record for a Maker. The Maker calls it within its own transaction, so all results come from one state.
type Source interface {
	// End returns where the record ends. A record without deltas is an error.
	End(ctx context.Context, tx pgx.Tx) (End, error)
	// Lives returns objects without their versions, in any order: those with these numbers, or all that live at a seq if
	// ids is nil.
	Lives(ctx context.Context, tx pgx.Tx, at int64, ids []int64) ([]*Record, error)
	// Fold sets the versions of objects at a seq, from the deltas alone. A damaged object gets no Doc, and its first seq.
	Fold(ctx context.Context, tx pgx.Tx, at int64, objects []*Record) error
	// Tail returns the changes after one seq and up to another, by ObjectID.
	Tail(ctx context.Context, tx pgx.Tx, after, upTo int64) (map[int64]Change, error)
}

// An End is the end of a record.
type End struct {
	FirstSeq, Seq int64            // first and last delta
	ObservedAt    time.Time        // of Seq
	Streams       map[int32]string // newest resource version of each stream
}

// A Change holds the deltas of an object after a checkpoint.
type Change interface {
	// Dead reports whether the object was deleted.
	Dead() bool
	// Apply sets the last version of an object. After an error the object is unchanged, and Source.Fold folds it as far as
	// possible.
	Apply(object *Record) error
}
