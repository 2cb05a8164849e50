package fold_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/fold"
	"github.com/kuberewind/kuberewind/patch"
)

const (
	first  = `{"data":{"n":"1"},"metadata":{"name":"a","resourceVersion":"1"}}`
	second = `{"data":{"n":"2"},"metadata":{"name":"a","resourceVersion":"2"}}`
)

func TestARowFoldsToTheServedVersion(t *testing.T) {
	change, err := patch.Diff(fold.Rebased(patch.Doc(first), "2"), patch.Doc(second))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		row    fold.Row
		before patch.Doc
		want   string
		err    error
	}{
		"a keyframe":                     {fold.Row{RV: "1", Object: []byte(first)}, nil, first, nil},
		"a keyframe in another order":    {fold.Row{RV: "1", Object: []byte(`{"metadata": {"resourceVersion": "1", "name": "a"}, "data": {"n": "1"}}`)}, nil, first, nil},
		"a patch":                        {fold.Row{RV: "2", Patch: change}, patch.Doc(first), second, nil},
		"both: the keyframe counts":      {fold.Row{RV: "2", Patch: []byte(`[]`), Object: []byte(second)}, patch.Doc(first), second, nil},
		"exact counts before the object": {fold.Row{RV: "2", Object: []byte(first), Exact: []byte(second)}, nil, second, nil},
		"an inferred delete":             {fold.Row{}, patch.Doc(first), first, nil},
		"a patch without a version":      {fold.Row{RV: "2", Patch: change}, nil, "", fold.ErrNoKeyframe},
		"nothing at all":                 {fold.Row{}, nil, "", fold.ErrNoKeyframe},
	} {
		t.Run(name, func(t *testing.T) {
			digest := patch.Digest(patch.Doc(c.want))
			doc, err := c.row.Checked(c.before, digest[:])
			require.ErrorIs(t, err, c.err)
			require.Equal(t, c.want, string(doc))
			if c.err == nil {
				_, err = c.row.Checked(c.before, make([]byte, len(digest)))
				require.ErrorIs(t, err, fold.ErrDigest)
			}
		})
	}
}

func TestAVersionWithoutAResourceVersionIsNotRebased(t *testing.T) {
	for _, doc := range []patch.Doc{patch.Doc(`{"a":1}`), patch.Doc(`[]`)} {
		require.Equal(t, doc, fold.Rebased(doc, "7"))
	}
	require.Equal(t, patch.Doc(first), fold.Rebased(patch.Doc(first), ""))
}
