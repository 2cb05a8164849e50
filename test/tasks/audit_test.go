package tasks_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/scene/record"
)

func TestTheAuditLogOfTheSceneNamesTheUsersThatTheRecordCannotKnow(t *testing.T) {
	deleted := deletions(t)
	require.Equal(t, "alice", deleted["jobs/migrate"])
	require.Equal(t, "bob", deleted["namespaces/legacy"])
}

// deletions gives who deleted each object, by resource and name.
func deletions(t *testing.T) map[string]string {
	t.Helper()
	plain, err := zstd.NewReader(bytes.NewReader(record.Audit))
	require.NoError(t, err)
	defer plain.Close()
	deleted := map[string]string{}
	for events := json.NewDecoder(plain); ; {
		var event struct {
			Verb      string
			User      struct{ Username string }
			ObjectRef struct{ Resource, Name string }
		}
		err := events.Decode(&event)
		if errors.Is(err, io.EOF) {
			return deleted
		}
		require.NoError(t, err)
		if event.Verb == "delete" {
			deleted[event.ObjectRef.Resource+"/"+event.ObjectRef.Name] = event.User.Username
		}
	}
}
