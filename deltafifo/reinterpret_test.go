package deltafifo

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// bodied is a version of an object with a body that does not match its resource version.
func bodied(name, uid, rv, body string) *object {
	o := obj(name, uid, rv)
	o.body = body
	return o
}

func TestAComparisonEnqueuesOnlyOtherContentOfTheSameVersion(t *testing.T) {
	q, f := newFIFO(Options{}, FIFOOptions{KnownObjects: knowing(obj("same", "1", "1"), obj("defaulted", "2", "2"), obj("newer", "3", "3"), obj("recreated", "4", "4"), obj("gone", "5", "5"))})
	require.NoError(t, f.Update(obj("held", "6", "6")))
	require.NoError(t, f.Delete(obj("gone", "5", "6")))
	require.NoError(t, f.Update(obj("newer", "3", "7")))
	next(t, q)
	n, err := f.Tail().Compare([]any{
		obj("same", "1", "1"), bodied("defaulted", "2", "2", "x"), bodied("held", "6", "6", "x"),
		bodied("newer", "3", "3", "x"), // the watch has served a later version
		obj("recreated", "40", "8"), obj("appeared", "9", "9"), bodied("gone", "5", "5", "x"), obj("same", "1", "10"),
	})
	require.NoError(t, err)
	require.Equal(t, 2, n)
	n, err = f.Tail().Compare([]any{bodied("defaulted", "2", "2", "x")})
	require.NoError(t, err)
	require.Zero(t, n, "waiting entries are compared, too")
	require.NoError(t, f.Tail().Compared("v1 abc"))
	entries := next(t, q)
	require.Equal(t, []string{"schema Sync defaulted/2@2=x >", "schema Sync held/6@6=x >", "compared  .. +0 ~0 -0 =0 >"}, describe(entries))
	require.Equal(t, "v1 abc", entries[2].Marker.Detail)
}

func TestAComparisonComesBetweenThePagesOfAList(t *testing.T) {
	q := New(Options{})
	known := knowing(obj("a", "1", "1"), obj("b", "2", "2"))
	options := FIFOOptions{Stream: "s", KnownObjects: known, KeyFunction: nameOf}
	list, comparison := q.FIFO(options), q.FIFO(options)
	require.NoError(t, list.BeginReplace("expired", "", "1"))
	require.NoError(t, list.ReplacePage([]any{bodied("a", "1", "1", "x")}, "5"))
	n, err := comparison.Tail().Compare([]any{bodied("a", "1", "1", "x"), bodied("b", "2", "2", "x")})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.NoError(t, list.ReplacePage([]any{bodied("b", "2", "2", "x")}, "5"))
	require.NoError(t, list.EndReplace("5"))
	require.Equal(t, []string{"schema Sync a/1@1=x >", "schema Sync b/2@2=x >", "replaced expired 1..5 +0 ~1 -0 =1 >5"}, describe(next(t, q)))
}
