package preflight

import (
	"context"
	"fmt"
	"strings"

	"github.com/kuberewind/kuberewind/internal/cluster"
	"github.com/kuberewind/kuberewind/internal/config"
)

// checkElection reports how several recorders of the cluster would elect a leader, and checks the rights for that.
func (c *checker) checkElection(ctx context.Context) {
	const what = "leader election"
	namespace, err := c.cluster.LeaseNamespace()
	switch {
	case err != nil:
		c.note(what, "", err)
	case c.cfg.Database == config.Embedded:
		c.note(what, "none: the embedded database accepts only one recorder", nil)
	case namespace == "":
		c.note(what, "by the database; nothing is written to the cluster", nil)
	default:
		lease := fmt.Sprintf("Lease %s/%s", namespace, c.cfg.LeaseName)
		needed := c.cfg.LeaderElect == config.ElectLease
		c.checkRight(ctx, what, "by the "+lease+" and the database", cluster.LeaseRight, namespace, c.cfg.LeaseName, needed)
	}
}

// checkEvents reports whether the recorder could write Events about itself.
func (c *checker) checkEvents(ctx context.Context) {
	const what = "events"
	namespace := c.cluster.EventNamespace()
	if namespace == "" {
		c.note(what, "none about the recorder: it does not run in a cluster, and --event-namespace names no namespace", nil)
		return
	}
	c.checkRight(ctx, what, "about the recorder, in namespace "+namespace, cluster.EventRight, namespace, "", false)
}

// checkRight adds a finding about a right. If the right is missing, the finding advises to grant it, and fails only if the right is needed.
func (c *checker) checkRight(ctx context.Context, what, detail string, of cluster.Right, namespace, name string, needed bool) {
	missing, err := c.cluster.Missing(ctx, of, namespace, name)
	if err != nil {
		c.note(what, "", err)
		return
	}
	f := Finding{What: what, OK: true, Detail: fmt.Sprintf("%s: may %s", detail, strings.Join(of.Verbs, ", "))}
	if len(missing) > 0 {
		f.OK, f.Detail, f.Advice = !needed, fmt.Sprintf("%s: may not %s", detail, strings.Join(missing, ", ")), of.Rule(namespace)
	}
	c.add(f)
}
