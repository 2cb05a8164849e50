package owner_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/owner"
	"github.com/kuberewind/kuberewind/patch"
)

func TestTheControllerComesFirstAndOwnersWithoutUIDAreSkipped(t *testing.T) {
	for text, want := range map[string][]string{
		`{}`:                                      nil,
		`{"metadata":{"ownerReferences":[]}}`:     nil,
		`{"metadata":{"ownerReferences":"odd"}}`:  nil,
		`{"metadata":{"ownerReferences":[1,{}]}}`: nil,
		`{"metadata":{"ownerReferences":[{"uid":1},{"uid":""},{"uid":"a"}]}}`:                                   {"a"},
		`{"metadata":{"ownerReferences":[{"uid":"a"},{"controller":false,"uid":"b"}]}}`:                         {"a", "b"},
		`{"metadata":{"ownerReferences":[{"uid":"a"},{"controller":true,"uid":"b"},{"uid":"c"}]}}`:              {"b", "a", "c"},
		`{"metadata":{"annotations":{"ownerReferences":"x"},"ownerReferences":[{"uid":"a\u0000b"}]},"uid":"z"}`: {"a\uFFFDb"},
	} {
		doc, err := patch.Canonical([]byte(text))
		require.NoError(t, err)
		require.Equal(t, want, owner.UIDs(doc), text)
	}
}
