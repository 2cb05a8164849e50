package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/delta"
)

// A RecordedStream is a stream on record. DefinitionUID is the UID of the last CustomResourceDefinition of its
// resource, empty if none is on record. DefinitionEnd is the resource version with which that definition was deleted.
// It is empty while the definition lives, and Pruned if the row of the deletion is no longer on record.
type RecordedStream struct {
	StreamSpec
	Position                     string
	Alive                        bool // there are living objects
	DefinitionUID, DefinitionEnd string
}

// Pruned stands for a resource version that is no longer on record.
const Pruned = "pruned"

// endOfLife selects the resource version with which the life l of record_lives was deleted, or an empty text if it
// lives. $2 is Pruned.
const endOfLife = `CASE WHEN l.deleted_seq IS NULL THEN '' ELSE coalesce((
		SELECT x.rv FROM kuberewind.days y JOIN kuberewind.deltas_data x
			ON x.cluster = y.cluster AND x.seq = l.deleted_seq AND x.observed_at BETWEEN y.first_at AND y.last_at
		WHERE y.cluster = l.cluster AND l.deleted_seq BETWEEN y.first_seq AND y.last_seq LIMIT 1), $2) END`

// Streams returns all streams of the cluster that are on record.
func (p *Prior) Streams(ctx context.Context) ([]RecordedStream, error) {
	rows, err := p.pool.Query(ctx, `
		SELECT s.api_group, s.resource, s.scope, s.version, s.kind, s.namespaced, s.filter, coalesce(s.position, ''),
			EXISTS (SELECT FROM kuberewind.living a WHERE a.cluster = s.cluster AND a.stream = s.stream),
			coalesce(d.uid, ''), coalesce(d.ended, '')
		FROM kuberewind.streams s LEFT JOIN LATERAL (
			SELECT l.uid, `+endOfLife+` AS ended
			FROM kuberewind.record_lives l JOIN kuberewind.streams c ON c.cluster = l.cluster AND c.stream = l.stream
			WHERE l.cluster = s.cluster AND l.name = s.resource || '.' || s.api_group AND l.namespace = ''
				AND c.api_group = 'apiextensions.k8s.io' AND c.resource = 'customresourcedefinitions'
			ORDER BY l.object_id DESC LIMIT 1) d ON true
		WHERE s.cluster = $1 ORDER BY s.stream`, p.cluster, Pruned)
	if err != nil {
		return nil, fmt.Errorf("find the streams on record: %w", explain(err))
	}
	streams, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r RecordedStream, err error) {
		return r, row.Scan(&r.Group, &r.Resource, &r.Scope, &r.Version, &r.Kind, &r.Namespaced, &r.Filter, &r.Position, &r.Alive, &r.DefinitionUID, &r.DefinitionEnd)
	})
	if err != nil {
		return nil, fmt.Errorf("find the streams on record: %w", explain(err))
	}
	return streams, nil
}

// DefinedLives holds what the record knows of the definitions of a resource.
type DefinedLives struct {
	Lives []DefinedLife // newest first
	UpTo  string        // all definitions up to this resource version are on record; empty if unknown
	Blind bool          // a gap of the definitions may hide others: one after the resource's position, or since that was recorded
}

// DefinedLife is the life of a definition. Created is the resource version with which it was created. It is empty if no
// stream saw the creation, or if the row is no longer on record. End is the resource version with which it was deleted,
// with the same special cases as DefinitionEnd.
type DefinedLife struct{ Created, End string }

// DefinedBefore returns the last hundred definitions of a resource, except the definition with a UID.
func (p *Prior) DefinedBefore(ctx context.Context, group, resource string, uid types.UID) (*DefinedLives, error) {
	d := new(DefinedLives)
	rows, err := p.pool.Query(ctx, `
		SELECT `+endOfLife+`, coalesce((
				SELECT x.rv FROM kuberewind.days y JOIN kuberewind.deltas_data x
					ON x.cluster = y.cluster AND x.seq = l.object_id AND x.observed_at BETWEEN y.first_at AND y.last_at AND x.type = $5 AND x.source = $6
				WHERE y.cluster = l.cluster AND l.object_id BETWEEN y.first_seq AND y.last_seq LIMIT 1), ''),
			CASE WHEN c.synced THEN coalesce(c.position, '') ELSE '' END, CASE WHEN c.synced THEN coalesce(c.last_rv, '') ELSE '' END,
			EXISTS (SELECT FROM kuberewind.gaps_data g WHERE g.cluster = c.cluster AND g.stream = c.stream
				AND g.outcome IS DISTINCT FROM $7 AND (coalesce(g.to_at, 'infinity') >= r.positioned_at
					OR (length(g.to_rv), g.to_rv COLLATE "C") > (length(r.position), r.position COLLATE "C")))
		FROM kuberewind.record_lives l JOIN kuberewind.streams c ON c.cluster = l.cluster AND c.stream = l.stream
			JOIN kuberewind.streams r ON r.cluster = l.cluster AND r.resource || '.' || r.api_group = l.name AND r.scope = ''
		WHERE l.cluster = $1 AND l.name = $3 AND l.namespace = '' AND l.uid <> $4
			AND c.api_group = 'apiextensions.k8s.io' AND c.resource = 'customresourcedefinitions'
		ORDER BY l.object_id DESC LIMIT 100`,
		p.cluster, Pruned, schema.GroupResource{Group: group, Resource: resource}.String(), string(uid), delta.NumberAdded, delta.NumberWatch, delta.OutcomeResumed)
	if err == nil {
		d.Lives, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (life DefinedLife, err error) {
			var last string
			if err := row.Scan(&life.End, &life.Created, &d.UpTo, &last, &d.Blind); err != nil {
				return life, err
			}
			if delta.Precedes(d.UpTo, last) {
				d.UpTo = last
			}
			return life, nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("find when %s.%s was defined before: %w", resource, group, explain(err))
	}
	return d, nil
}

// A Definition is a CustomResourceDefinition on record. Name is its resource and group. Created is the resource version
// with which it was created.
type Definition struct{ Name, UID, Created string }

// UnfollowedDefinitions returns the living definitions, created in the last day of the record, whose resources no stream has
// followed since the definition was created. The recorder that recorded such a definition ended before it followed the resource. It omits definitions that
// existed when the record began, and definitions that were created while no recorder watched.
func (p *Prior) UnfollowedDefinitions(ctx context.Context) ([]Definition, error) {
	rows, err := p.pool.Query(ctx, `
		SELECT l.name, l.uid, x.rv FROM kuberewind.streams c
		JOIN kuberewind.living a ON a.cluster = c.cluster AND a.stream = c.stream
		JOIN kuberewind.lives l ON l.cluster = a.cluster AND l.object_id = a.object_id
		JOIN kuberewind.deltas_data x ON x.cluster = l.cluster AND x.seq = l.object_id AND x.type = $2 AND x.source = $3 AND x.observed_at >= $4
		WHERE c.cluster = $1 AND c.api_group = 'apiextensions.k8s.io' AND c.resource = 'customresourcedefinitions' AND NOT EXISTS (
			SELECT FROM kuberewind.streams s WHERE s.cluster = c.cluster AND s.resource || '.' || s.api_group = l.name
				AND (length(s.position), s.position COLLATE "C") >= (length(x.rv), x.rv COLLATE "C"))
		ORDER BY l.object_id`, p.cluster, delta.NumberAdded, delta.NumberWatch, p.observed.Add(-24*time.Hour))
	if err != nil {
		return nil, fmt.Errorf("find the definitions whose resources are not followed: %w", explain(err))
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Definition])
	if err != nil {
		return nil, fmt.Errorf("find the definitions whose resources are not followed: %w", explain(err))
	}
	return found, nil
}
