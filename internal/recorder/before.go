package recorder

import (
	"context"
	"encoding/json"

	"github.com/kuberewind/kuberewind/internal/filter"
	"github.com/kuberewind/kuberewind/internal/resources"
	"github.com/kuberewind/kuberewind/internal/stream"
	"github.com/kuberewind/kuberewind/kube"
)

// loadBefore reads what earlier recorders recorded about resources. It sets r.before and the options of the streams.
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
	if streams.Unverified, err = prior.Unverified(ctx); err != nil {
		return err
	}
	if streams.PastRollbacks, err = prior.OtherReversals(ctx); err != nil {
		return err
	}
	streams.Before = filterOf(r.sink.Info().Config)
	b.unfollowed, err = resources.UnfollowedDefinitions(ctx, prior, streams.Before)
	return err
}

// filterOf returns the filter in the configuration of an earlier recorder. It returns nil if the configuration cannot be parsed.
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
