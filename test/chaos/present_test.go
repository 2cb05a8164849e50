package chaos_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// compared are the resources of the load, and those of the faults.
var compared = append(slices.Collect(maps.Keys(kindOf)), clusterRoles, clusterRoleBindings)

// living are the living objects of the compared resources, with the resource version of each.
type living map[object]string

// awaitPresent waits until the living objects on record are those of the API server. The ledger does not check that: it compares no list
// with etcd, and a list ends each gap. Events expire meanwhile, so one comparison may fail.
func (c *campaign) awaitPresent(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, *patience)
	defer cancel()
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := c.comparePresent(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("compare the record with the API server: %w", err)
		}
	}
}

func (c *campaign) comparePresent(ctx context.Context) error {
	served, err := c.served(ctx)
	if err != nil {
		return err
	}
	recorded, err := c.recorded(ctx)
	if err != nil {
		return err
	}
	if maps.Equal(served, recorded) {
		return nil
	}
	var differences []string
	all := maps.Clone(served)
	maps.Copy(all, recorded)
	for o := range all {
		if served[o] != recorded[o] {
			differences = append(differences, fmt.Sprintf("%v is at %q, on record at %q", o, served[o], recorded[o]))
		}
	}
	slices.Sort(differences)
	return fmt.Errorf("%d objects differ: %s", len(differences), strings.Join(differences[:min(5, len(differences))], "; "))
}

func (c *campaign) served(ctx context.Context) (living, error) {
	found := living{}
	for _, gvr := range compared {
		list, err := c.client.Resource(gvr).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", gvr.Resource, err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			found[object{gvr.Resource, o.GetNamespace(), o.GetName()}] = o.GetResourceVersion()
		}
	}
	return found, nil
}

func (c *campaign) recorded(ctx context.Context) (living, error) {
	found := living{}
	isCompared := map[schema.GroupResource]bool{}
	for _, gvr := range compared {
		isCompared[gvr.GroupResource()] = true
	}
	return found, c.query(ctx, func(ctx context.Context, db pgx.Tx) error {
		rows, err := db.Query(ctx, `SELECT api_group, resource, namespace, name, resource_version FROM kuberewind.objects WHERE NOT deleted`)
		if err != nil {
			return err
		}
		var gr schema.GroupResource
		var namespace, name, version string
		_, err = pgx.ForEachRow(rows, []any{&gr.Group, &gr.Resource, &namespace, &name, &version}, func() error {
			if isCompared[gr] {
				found[object{gr.Resource, namespace, name}] = version
			}
			return nil
		})
		return err
	})
}
