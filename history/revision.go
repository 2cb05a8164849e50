package history

import (
	"context"
	"fmt"
)

// Revision grows whenever something of the record's past goes: a day is dropped, or a value is erased. Objects that were
// rebuilt under an earlier one may hold an erased value.
func (r *Record) Revision(ctx context.Context) (n int64, err error) {
	err = r.pool.QueryRow(ctx, `
		SELECT (SELECT count(*) FROM kuberewind.prunes WHERE cluster = $1) + (SELECT count(*) FROM kuberewind.erasures WHERE cluster = $1)`, r.cluster.Name).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("read what was dropped and erased: %w", err)
	}
	return n, nil
}
