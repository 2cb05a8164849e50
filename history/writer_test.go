package history

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/booktest"
)

// A record of years has a thousand days, and most lives are short.
func TestLastWriterReadsOnlyTheDaysOfTheLife(t *testing.T) {
	b := newBook(t, 1)
	b.commit(b.set(0, "a", "other", `1`)) // 1
	b.Now = booktest.Noon.AddDate(0, 0, 1)
	b.commit(b.set(0, "a", "x", `1`)) // 2
	b.commit(b.set(0, "a", "x", `2`)) // 3
	r := b.record(t)
	tx, err := b.DB.Connect(t).Begin(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback(context.Background())) }()
	_, err = tx.Exec(t.Context(), `LOCK TABLE kuberewind.deltas_p20260310 IN ACCESS EXCLUSIVE MODE`)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, found, err := r.Lookup().LastWriter(ctx, 2, 3)
	require.NoError(t, err)
	require.False(t, found, "no delta of this record names its writer")
}
