package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/ctxerr"
	"github.com/kuberewind/kuberewind/kube"
)

// Cluster is the cluster of the configuration.
type Cluster struct {
	Client    *kube.Client
	Name, UID string // Name is the name in the record

	cfg   config.Config
	log   *slog.Logger
	found *kube.Config
}

// connectTimeout bounds the first answer of the API server.
const connectTimeout = 30 * time.Second

// Connect finds the cluster of the configuration and reads its UID.
func Connect(ctx context.Context, cfg config.Config, log *slog.Logger) (*Cluster, error) {
	found, err := kube.LoadConfig(kube.ConfigOptions{Kubeconfig: cfg.Kubeconfig, Context: cfg.Context})
	if err != nil {
		return nil, err
	}
	queueBytes, err := cfg.QueueBytes()
	if err != nil {
		return nil, err
	}
	// A page goes into the queue, so a page that is larger than the queue would not fit.
	client, err := kube.NewClient(found.REST, kube.Options{MaxPageBytes: queueBytes})
	if err != nil {
		return nil, err
	}
	c := &Cluster{Client: client, Name: cfg.ClusterName, cfg: cfg, log: log, found: found}
	log.Info("connecting to the cluster", "server", client.Host(), "context", found.Context)
	ctx, cancel := context.WithTimeoutCause(ctx, connectTimeout, fmt.Errorf("%s did not answer within %s", client.Host(), connectTimeout))
	defer cancel()
	id, err := client.ClusterUID(ctx)
	if err != nil {
		c.Close()
		return nil, ctxerr.Explain(ctx, err)
	}
	if c.UID = string(id); c.Name == "" {
		c.Name = found.Cluster
	}
	return c, nil
}

// Close closes the connections.
func (c *Cluster) Close() { c.Client.Close() }
