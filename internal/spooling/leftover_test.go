package spooling

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
)

// gone returns a delete of a watch.
func gone(rv string) deltafifo.Entry {
	return deltafifo.Entry{Source: delta.SourceWatch, Delta: cache.Delta{Type: delta.Deleted}, Position: rv}
}

func TestAStreamGoesOnWhereTheSpoolEnds(t *testing.T) {
	for name, test := range map[string]struct {
		entries  []deltafifo.Entry
		complete string      // how far the stream is complete
		list     delta.Cause // of the list that was cut
	}{
		"deletes may share a resource version": {[]deltafifo.Entry{
			{Position: "4"}, gone("5"), gone("6"), gone("6"),
		}, "5", ""},
		"so may events that were passed over": {[]deltafifo.Entry{
			{Position: "4"}, {Source: delta.SourceWatch, Position: "5"}, {Source: delta.SourceWatch, Position: "6"}, {Source: delta.SourceWatch, Position: "6"},
		}, "5", ""},
		"an update is complete": {[]deltafifo.Entry{
			{Position: "4"}, {Source: delta.SourceWatch, Delta: cache.Delta{Type: delta.Updated}, Position: "5"},
		}, "5", ""},
		"a watch makes no partial list whole": {[]deltafifo.Entry{
			{Source: delta.SourceWatch, Position: "5"}, {Source: delta.SourceWatch, Position: "6"},
		}, "", ""},
		"a bookmark is complete": {[]deltafifo.Entry{{Source: delta.SourceWatch, Position: "5"}, {Position: "6"}}, "6", ""},
		"a list that was cut": {[]deltafifo.Entry{
			{Source: delta.SourceWatch, Position: "5"}, {Marker: &delta.Marker{Kind: delta.Interrupted, Cause: "expired"}},
			{Source: delta.SourceRelist, Delta: cache.Delta{Type: delta.Sync}},
		}, "", "expired"},
		"a list that is complete": {[]deltafifo.Entry{
			{Source: delta.SourceList, Delta: cache.Delta{Type: delta.Sync}}, {Marker: &delta.Marker{Kind: delta.Replaced}, Position: "9"},
		}, "9", ""},
		"a comparison is no list": {[]deltafifo.Entry{
			{Position: "5"}, {Source: delta.SourceSchema, Delta: cache.Delta{Type: delta.Sync}}, {Marker: &delta.Marker{Kind: delta.Compared}},
		}, "5", ""},
	} {
		s, _ := spooledWidgets(t)
		l := &Leftover{}
		for i := range test.entries {
			l.take(s, &test.entries[i])
		}
		require.Equal(t, test.complete, l.Position.Complete, name)
		require.Equal(t, test.list != "", l.Listing, name)
		if l.Listing {
			require.Equal(t, test.list, l.ListCause, name)
		}
		require.Equal(t, len(test.entries), l.Entries, name)
	}
}
