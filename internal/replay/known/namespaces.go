package known

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/mistyped"
)

// Namespaces returns all namespaces that the record ever held, and the namespaces to which a recording is limited. It
// returns none if the record does not hold namespaces.
func Namespaces(ctx context.Context, rec *history.Record) ([]string, error) {
	streams, scopes, err := namespaceStreams(ctx, rec)
	if err != nil || len(streams) == 0 {
		return nil, err
	}
	names, _, err := Names(ctx, rec, Lives{Streams: streams, To: math.MaxInt64})
	names = append(names, scopes...)
	slices.Sort(names)
	return slices.Compact(names), err
}

func namespaceStreams(ctx context.Context, rec *history.Record) (streams []int32, scopes []string, err error) {
	all, err := rec.Streams(ctx)
	for _, s := range all {
		if s.Group == "" && s.Resource == "namespaces" {
			streams = append(streams, s.ID)
		}
		if s.Scope != "" {
			scopes = append(scopes, s.Scope)
		}
	}
	return streams, scopes, err
}

// UnknownNamespace returns a note that the record never held a namespace, with a similar name. It returns "" if the record
// held it, or does not hold namespaces.
func UnknownNamespace(ctx context.Context, rec *history.Record, namespace string) (string, error) {
	streams, scopes, err := namespaceStreams(ctx, rec)
	if err != nil || len(streams) == 0 || namespace == "" || slices.Contains(scopes, namespace) {
		return "", err
	}
	var held bool
	err = rec.Pool().QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM kuberewind.record_lives WHERE name = $1 AND namespace = '' AND cluster = $2 AND stream = ANY ($3::int[]))`,
		namespace, rec.Cluster().Number, streams).Scan(&held)
	if err != nil {
		return "", fmt.Errorf("look for namespace %s: %w", namespace, err)
	}
	if held {
		return "", nil
	}
	all, err := Namespaces(ctx, rec)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("the record never held a namespace %q", namespace)
	if like := mistyped.Suggest(namespace, all); like != "" {
		text += fmt.Sprintf("; did you mean %q?", like)
	}
	return text, nil
}
