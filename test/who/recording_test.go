package who_test

import (
	"bytes"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/scene/record"
)

func TestTheCommittedRecordingNamesNoWrongManager(t *testing.T) {
	database := pgtest.New(t, pgtest.EmptyRecord)
	require.NoError(t, record.Into(t.Context(), database.URL()))
	audit, err := zstd.NewReader(bytes.NewReader(record.Audit))
	require.NoError(t, err)
	defer audit.Close()
	requireJudged(t, audit, deltas(t.Context(), t, database.Connect(t)))
}
