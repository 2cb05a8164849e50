package recorder

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/internal/filter"
	"github.com/kuberewind/kuberewind/internal/resources"
	"github.com/kuberewind/kuberewind/internal/stream"
	"github.com/kuberewind/kuberewind/kube"
)

// before is what a recorder before this one has left on record about resources.
type before struct {
	// definitions is the resource version up to which CustomResourceDefinitions were recorded when this recorder began.
	definitions string
	// recorded are the resources that were followed before it.
	recorded []kube.Resource
	// unfollowed is, by UID, with which resource version a definition was created whose resource was to be followed before it, and was not yet.
	unfollowed map[types.UID]string
}

// loadBefore finds what a recorder before this one has left on record.
func (r *Recorder) loadBefore(ctx context.Context, streams *stream.Options) (err error) {
	prior, b := r.sink.Prior(), &r.before
	if b.definitions, err = prior.Position(ctx, kube.Definitions.Group, kube.Definitions.Resource); err != nil {
		return err
	}
	if b.recorded, err = resources.Recorded(ctx, prior, r.env.rules); err != nil {
		return err
	}
	if streams.Newest, err = prior.Revisions(ctx); err != nil {
		return err
	}
	if streams.Unverified, err = prior.Unproven(ctx); err != nil {
		return err
	}
	if streams.Reversals, err = prior.Untold(ctx); err != nil {
		return err
	}
	streams.Before = filterOf(r.sink.Info().Config)
	b.unfollowed, err = resources.Unfollowed(ctx, prior, streams.Before)
	return err
}

// filterOf gives the rules of a recorder's configuration, nil where they are not known.
func filterOf(config []byte) *filter.Filter {
	var rules struct{ Include, Exclude []string }
	if err := json.Unmarshal(config, &rules); err != nil {
		return nil
	}
	before, err := filter.New(rules.Include, rules.Exclude)
	if err != nil {
		return nil
	}
	return before
}
