package reports

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestALongCellIsWrappedWithinItsColumn(t *testing.T) {
	var out bytes.Buffer
	narrow := newTable(&out)
	narrow.row("Cluster:", "shop")
	narrow.row("Gaps:", "versions may be missing in 3 gaps")
	require.NoError(t, narrow.flush())
	require.Equal(t, "Cluster:   shop\nGaps:      versions may be missing in 3 gaps\n", out.String(), "the output is no terminal")
	require.Equal(t, "Cluster:   shop\nGaps:      versions may be\n           missing in 3 gaps\n", narrow.wrapped(30))

	wide := newTable(&out)
	wide.titled("RESOURCE", "POSITION", "WHY")
	wide.row("configmaps", "1234567", "nothing was seen for long")
	require.NoError(t, wide.flush())
	require.Equal(t, "\nRESOURCE     POSITION\n    WHY\nconfigmaps   1234567\n    nothing was seen for long\n", wide.wrapped(42), "folded between its columns")
}
