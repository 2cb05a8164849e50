package status

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/history"
)

// Head is the newest commit of a cluster, at the end of the chain of commits.
type Head struct {
	Cluster string `json:"cluster"`
	UID     string `json:"uid"`
	Batch   int64  `json:"batch"`
	Digest  string `json:"digest"` // hexadecimal
	Head    string `json:"head"`   // batch and digest, N:HEX
}

// ClusterError says that the name does not select exactly one cluster.
type ClusterError struct{ why string }

func (e *ClusterError) Error() string { return e.why }

// ReadHead reads the head of the cluster with a name, or of the only cluster if the name is empty. It reads only views that an auditor may
// read. If the name does not select exactly one cluster, the error is a *ClusterError.
func ReadHead(ctx context.Context, conn *pgx.Conn, cluster string) (Head, error) {
	rows, err := conn.Query(ctx, `
		SELECT c.name, c.uid, h.batch, h.digest FROM kuberewind.record_heads h JOIN kuberewind.record_clusters c USING (cluster)
		WHERE $1 IN ('', c.name) ORDER BY c.name`, cluster)
	if err != nil {
		return Head{}, fmt.Errorf("read the head of the record: %w", err)
	}
	heads, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (h Head, err error) {
		var digest []byte
		if err := row.Scan(&h.Cluster, &h.UID, &h.Batch, &digest); err != nil {
			return h, err
		}
		head := history.Head{Batch: h.Batch}
		copy(head.Digest[:], digest)
		h.Digest, h.Head = hex.EncodeToString(digest), head.String()
		return h, nil
	})
	switch {
	case err != nil:
		return Head{}, fmt.Errorf("read the head of the record: %w", err)
	case len(heads) == 1 && heads[0].Batch > 0:
		return heads[0], nil
	case len(heads) > 1:
		return Head{}, &ClusterError{"the record holds several clusters: name one with --cluster-name"}
	case len(heads) == 0 && cluster != "":
		return Head{}, &ClusterError{fmt.Sprintf("the record holds no cluster %q", cluster)}
	}
	return Head{}, errors.New(`nothing is recorded yet; "recorder run" records`)
}
