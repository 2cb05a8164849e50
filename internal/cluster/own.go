package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kuberewind/kuberewind/internal/clusterevents"
	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/election"
	"github.com/kuberewind/kuberewind/internal/version"
	"github.com/kuberewind/kuberewind/kube"
)

// Lease returns the Lease of the configuration, or nil for none.
func (c *Cluster) Lease(ctx context.Context) (*election.Lease, error) {
	namespace, err := c.LeaseNamespace()
	if err != nil || namespace == "" {
		return nil, err
	}
	missing, err := c.Missing(ctx, LeaseRight, namespace, c.cfg.LeaseName)
	if err != nil {
		return nil, err
	}
	if len(missing) == 0 {
		return election.NewLease(c.ownConfig(), namespace, c.cfg.LeaseName, election.Name()+"_"+uuid.NewString(), c.cfg.LeaseDuration)
	}
	err = fmt.Errorf("the Lease %s/%s may not be used (%s)", namespace, c.cfg.LeaseName, strings.Join(missing, ", "))
	if c.cfg.LeaderElect == config.ElectLease {
		return nil, fmt.Errorf("%w: \"recorder check\" says what to grant", err)
	}
	c.log.Warn("several recorders would elect a leader by the database alone", "error", err, "advice", `"recorder check" says what to grant`)
	return nil, nil
}

// LeaseNamespace returns the namespace of the Lease, or "" if the configuration needs no Lease.
func (c *Cluster) LeaseNamespace() (string, error) {
	inCluster := c.found.InCluster()
	switch {
	case c.cfg.Database == config.Embedded, c.cfg.LeaderElect == config.ElectDatabase, c.cfg.LeaderElect == config.ElectAuto && !inCluster:
		return "", nil
	case c.cfg.LeaseNamespace != "":
		return c.cfg.LeaseNamespace, nil
	case inCluster:
		return c.found.Namespace, nil
	}
	return "", errors.New("leader-elect lease outside a cluster needs a namespace for the Lease: name it with --lease-namespace")
}

// ownConfig returns the configuration of clients for everything that the recorder writes to the cluster: a Lease and Events.
func (c *Cluster) ownConfig() *rest.Config {
	config := rest.CopyConfig(c.found.REST)
	config.UserAgent = "kuberewind/" + version.String()
	return config
}

// Publisher returns a publisher of Events about the recorder, or nil if there is no namespace for them.
func (c *Cluster) Publisher(ctx context.Context) (*clusterevents.Publisher, error) {
	namespace := c.EventNamespace()
	if namespace == "" {
		return nil, nil
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	o := clusterevents.Options{Config: c.ownConfig(), Namespace: namespace, Host: host, Log: c.log}
	if c.found.InCluster() {
		o.Pod, o.PodUID = c.ownPod(ctx, namespace, host)
	}
	return clusterevents.New(o)
}

// EventNamespace returns the namespace of Events about the recorder, or "" for none.
func (c *Cluster) EventNamespace() string {
	if c.cfg.EventNamespace == "" && c.found.InCluster() {
		return c.found.Namespace
	}
	return c.cfg.EventNamespace
}

// ownPod returns the Pod whose name is the name of this host. Containers have the host name of their Pod, unless they use the host's
// network.
func (c *Cluster) ownPod(ctx context.Context, namespace, host string) (name string, uid types.UID) {
	pods := kube.Resource{Version: "v1", Name: "pods", Kind: "Pod", Namespaced: true}
	pod, err := c.Client.ListWatch(pods, namespace).Get(ctx, namespace, host)
	if err != nil {
		return "", ""
	}
	return pod.Name, pod.UID
}
