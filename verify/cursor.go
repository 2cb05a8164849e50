package verify

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// A cursor reads the rows of a query in parts, so that several queries can be read in parallel in one snapshot.
type cursor[T any] struct {
	tx   pgx.Tx
	name string
	scan func(pgx.CollectableRow) (T, error)
	rows []T // fetched, but not taken
	done bool
}

// fetchRows is the number of rows in one fetch.
const fetchRows = "2000"

// A cursorOpener declares cursors until one fails.
type cursorOpener struct {
	ctx  context.Context
	tx   pgx.Tx
	args []any
	err  error
}

func declare[T any](o *cursorOpener, name, query string, scan func(pgx.CollectableRow) (T, error)) *cursor[T] {
	if o.err == nil {
		_, o.err = o.tx.Exec(o.ctx, "DECLARE "+name+" NO SCROLL CURSOR FOR "+fmt.Sprintf(query, o.args...))
	}
	return &cursor[T]{tx: o.tx, name: name, scan: scan}
}

func (c *cursor[T]) fill(ctx context.Context) error {
	if len(c.rows) > 0 || c.done {
		return nil
	}
	rows, err := c.tx.Query(ctx, "FETCH "+fetchRows+" FROM "+c.name)
	if err != nil {
		return err
	}
	c.rows, err = pgx.AppendRows(c.rows[:0], rows, c.scan)
	c.done = len(c.rows) == 0
	return err
}

// take returns the next row, or false at the end.
func (c *cursor[T]) take(ctx context.Context) (row T, ok bool, err error) {
	if err := c.fill(ctx); err != nil || c.done {
		return row, false, err
	}
	row = c.rows[0]
	c.rows = c.rows[1:]
	return row, true, nil
}

// through calls give with each row whose key is from first to last, and skips rows with lower keys.
func (c *cursor[T]) through(ctx context.Context, key func(*T) int64, first, last int64, give func(*T)) error {
	for {
		if err := c.fill(ctx); err != nil || c.done {
			return err
		}
		k := key(&c.rows[0])
		if k > last {
			return nil
		}
		if k >= first {
			give(&c.rows[0])
		}
		c.rows = c.rows[1:]
	}
}
