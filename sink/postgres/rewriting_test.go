package postgres

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/patch"
)

func TestAnObjectRedactedAgainCountsUntilItIsCommitted(t *testing.T) {
	r := record(t, newDatabase(t))
	uid := newUID()
	r.commit(watched(r.pods(), delta.Added, made(t, "a", "x", uid, "11", `1`)))
	r.reopen()
	spec := StreamSpec{Resource: "pods", Kind: "Pod", Namespaced: true}
	spec.Redact = func(doc patch.Doc) (patch.Doc, error) {
		return patch.Canonical(bytes.Replace(doc, []byte(`{`), []byte(`{"a":1,`), 1))
	}
	pods := r.stream(spec)
	require.True(t, r.sink.Rewriting())
	b := r.encode(watched(pods, delta.Updated, made(t, "a", "x", uid, "12", `2`)))
	require.Zero(t, r.sink.Rewritten())
	require.True(t, r.sink.Rewriting(), "before the commit")
	require.NoError(t, r.sink.Commit(context.Background(), b))
	require.False(t, r.sink.Rewriting())
}

func TestAnObjectThatCannotBeRedactedCountsUntilItsNextVersion(t *testing.T) {
	var log bytes.Buffer
	r := record(t, newDatabase(t), func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	uid := newUID()
	r.commit(watched(r.pods(), delta.Added, made(t, "a", "x", uid, "11", `1`)))
	r.reopen()
	pods := r.stream(StreamSpec{Resource: "pods", Kind: "Pod", Namespaced: true, Redact: func(patch.Doc) (patch.Doc, error) { return nil, errors.New("no rule") }})
	require.Equal(t, 1, r.sink.Rewritten())
	require.Contains(t, log.String(), "cannot be redacted under the present rules")
	require.NotContains(t, log.String(), "does not fold")
	r.commit(watched(pods, delta.Updated, made(t, "a", "x", uid, "12", `2`)))
	require.False(t, r.sink.Rewriting())
}
