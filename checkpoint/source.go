package checkpoint

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// A Source is the record that checkpoints are made of. A Maker asks it within its own transaction, so all answers are of one state.
type Source interface {
	// End says where the record ends. A record without deltas is an error.
	End(ctx context.Context, tx pgx.Tx) (End, error)
	// Lives gives objects without their versions, in any order: those with the numbers, or all that live at a seq if ids is nil.
	Lives(ctx context.Context, tx pgx.Tx, at int64, ids []int64) ([]*Record, error)
	// Fold gives objects their versions at a seq, from the deltas alone. A damaged object gets no Doc, and its first seq.
	Fold(ctx context.Context, tx pgx.Tx, at int64, objects []*Record) error
	// Tail gives what the deltas after one seq and up to another say, by ObjectID.
	Tail(ctx context.Context, tx pgx.Tx, after, upTo int64) (map[int64]Change, error)
}

// An End is where a record ends.
type End struct {
	FirstSeq, Seq int64            // first and last delta
	ObservedAt    time.Time        // of Seq
	Streams       map[int32]string // newest resource version of each stream
}

// A Change is what the deltas after a checkpoint say of an object.
type Change interface {
	// Dead reports whether the object was deleted.
	Dead() bool
	// Apply gives the object its last version. After an error the object is as before, and Source.Fold finds what it can.
	Apply(object *Record) error
}
