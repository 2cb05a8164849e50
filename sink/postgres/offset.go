package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// An Offset says which entries of a spool are on record.
type Offset struct {
	Spool []byte // identity of the spool, nil for none
	Next  uint64 // index of the first entry that is not on record
}

// SetOffset sets the offset of the recorder's spool. The commit writes it, even if the batch is empty. Without this
// call, the head names no spool.
func (b *Batch) SetOffset(o Offset) { b.notes.offset = o }

// SetVerified says that the recorder has compared samples of everything observed before then with etcd again, and found no
// rollback. The record keeps the latest such time, from batches that have something to commit. The zero time changes
// nothing.
func (b *Batch) SetVerified(until time.Time) {
	if b.notes.verified = nil; !until.IsZero() {
		b.notes.verified = &until
	}
}

// next is the value of heads.spool_next: NULL without a spool.
func (o Offset) next() *int64 {
	if o.Spool == nil {
		return nil
	}
	next := int64(o.Next)
	return &next
}

// commitEmpty writes the offset of the spool, if there is one: the record must note each entry that is removed from the
// queue (I7).
func (s *Sink) commitEmpty(ctx context.Context, b *Batch) error {
	if b.notes.offset.Spool != nil {
		if _, err := s.committer.commit(ctx, b); err != nil {
			return fmt.Errorf("write the spool offset of cluster %q: %w", s.cfg.ClusterName, explain(err))
		}
	}
	s.spare.keep(b)
	return nil
}

// moveOffset is the transaction of a batch without rows. A lost attempt may still run after a later one, so the offset
// never goes back.
func (c *committer) moveOffset(ctx context.Context, conn *pgx.Conn, b *Batch) error {
	tag, err := conn.Exec(ctx, `
		UPDATE kuberewind.heads SET spool = $5, spool_next = CASE WHEN spool = $5 THEN greatest(spool_next, $6) ELSE $6 END
		WHERE cluster = $1 AND epoch = $2 AND seq = $3 AND batch = $4`,
		c.cluster, b.after.epoch, b.before.seq, b.before.batch, b.notes.offset.Spool, b.notes.offset.next())
	if err != nil || tag.RowsAffected() == 1 {
		return err
	}
	return c.notFound(ctx, conn, b)
}

// A Queryer is a connection, or a pool of connections.
type Queryer interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// ReadOffset returns the digest of a cluster's head, and the offset of the spool that the last commit noted.
func ReadOffset(ctx context.Context, db Queryer, clusterUID string) (head []byte, o Offset, err error) {
	err = db.QueryRow(ctx, `
		SELECT h.digest, h.spool, coalesce(h.spool_next, 0) FROM kuberewind.heads h JOIN kuberewind.clusters c USING (cluster) WHERE c.uid = $1`, clusterUID).
		Scan(&head, &o.Spool, &o.Next)
	if err != nil {
		return nil, Offset{}, fmt.Errorf("read the head of the record: %w", explain(err))
	}
	return head, o, nil
}
