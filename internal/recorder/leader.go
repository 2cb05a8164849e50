package recorder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgconn"
	"k8s.io/client-go/rest"

	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/database"
	"github.com/kuberewind/kuberewind/internal/election"
	"github.com/kuberewind/kuberewind/internal/redact"
	"github.com/kuberewind/kuberewind/internal/version"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// elect returns when this recorder is the one that records the cluster. The embedded database has refused others already. The row of the leader
// tells auditors there, too, that it records.
func (r *Recorder) elect(ctx context.Context, uid string) error {
	lease, err := r.lease(ctx)
	if err != nil {
		return err
	}
	options := election.Options{
		Cluster: uid, Identity: election.Name(), Connect: r.database.ConnectWith, ClaimFile: filepath.Join(r.cfg.DataDir, "leadership", uid), Term: r.cfg.LeaseDuration,
		Lease: lease, Log: r.log,
	}
	r.election, err = election.Start(ctx, options)
	if incomplete(err) {
		// The row of the leader is part of the record. The first recorder makes it.
		if err := r.database.Ready(ctx, r.cfg.Migrate); err != nil {
			return err
		}
		r.election, err = election.Start(ctx, options)
	}
	if err != nil {
		return r.database.Refused(err)
	}
	return r.election.Await(ctx, func(ctx context.Context, leader string) error {
		if !r.standby.Swap(true) {
			r.log.Info("standby: another recorder records this cluster", "leader", leader)
			r.notices.Normal("Standby", fmt.Sprintf("%s stands by: %s records", election.Name(), leader))
		}
		return r.checkSuccession(ctx, uid)
	})
}

// incomplete says whether an error comes from a database without a record, or without the rights that go with it.
func incomplete(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) &&
		(refused.Code == pgerrcode.UndefinedTable || refused.Code == pgerrcode.InvalidSchemaName || refused.Code == pgerrcode.InsufficientPrivilege)
}

// checkSuccession looks whether this recorder could take over at all: whoever has two wants to hear of it before the first is gone.
func (r *Recorder) checkSuccession(ctx context.Context, uid string) error {
	conn, err := r.database.Connect(ctx)
	if err != nil {
		return nil // The election says so.
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	recorded, err := database.KeyOf(ctx, conn, uid)
	if err != nil || recorded == nil {
		return nil // There is no record yet, or the database is away.
	}
	file, err := redact.ReadKey(r.cfg.KeyFile())
	key := file.Of(uid)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("this recorder could not take over: %s does not exist, and the cluster is recorded with a key (fingerprint %x): "+
			"give each recorder the same file, with --redaction-key-file", r.cfg.KeyFile(), recorded)
	case err != nil:
		return err
	case !bytes.Equal(recorded, key.Fingerprint()):
		return fmt.Errorf("this recorder could not take over: %s is another key (fingerprint %x) than the one with which the cluster is recorded (%x): "+
			"give each recorder the same file, with --redaction-key-file", r.cfg.KeyFile(), key.Fingerprint(), recorded)
	}
	return nil
}

// leaseRight is what a recorder has to be granted to be elected by a Lease.
var leaseRight = right{
	resource: kube.Resource{Group: "coordination.k8s.io", Version: "v1", Name: "leases", Kind: "Lease"},
	verbs:    []string{"get", "create", "update"},
}

// eventRight is what it has to be granted to tell of itself.
var eventRight = right{resource: kube.Resource{Version: "v1", Name: "events", Kind: "Event"}, verbs: []string{"create", "patch"}}

// right is one to use verbs on a resource.
type right struct {
	resource kube.Resource
	verbs    []string
}

// missing are those of the verbs that are not granted in a namespace. To create cannot be granted by name.
func (r *Recorder) missing(ctx context.Context, of right, namespace, name string) (verbs []string, err error) {
	for _, verb := range of.verbs {
		on := name
		if verb == "create" {
			on = ""
		}
		allowed, _, err := r.client.AllowedOn(ctx, verb, of.resource, namespace, on)
		if err != nil {
			return nil, err
		}
		if !allowed {
			verbs = append(verbs, verb)
		}
	}
	return verbs, nil
}

// rule is what to grant in a namespace: text that can be pasted.
func (of right) rule(namespace string) string {
	return fmt.Sprintf("Grant in a Role of the recorder in namespace %s:\n\nrules:\n- {apiGroups: [%q], resources: [%s], verbs: [%s]}\n",
		namespace, of.resource.Group, of.resource.Name, strings.Join(of.verbs, ", "))
}

// lease is the Lease that the configuration asks for, nil for none.
func (r *Recorder) lease(ctx context.Context) (*election.Lease, error) {
	namespace, err := r.leaseNamespace()
	if err != nil || namespace == "" {
		return nil, err
	}
	missing, err := r.missing(ctx, leaseRight, namespace, r.cfg.LeaseName)
	if err != nil {
		return nil, err
	}
	if len(missing) == 0 {
		return election.NewLease(r.ownConfig(), namespace, r.cfg.LeaseName, election.Name()+"_"+uuid.NewString(), r.cfg.LeaseDuration)
	}
	err = fmt.Errorf("the Lease %s/%s may not be used (%s)", namespace, r.cfg.LeaseName, strings.Join(missing, ", "))
	if r.cfg.LeaderElect == config.ElectLease {
		return nil, fmt.Errorf("%w: \"recorder check\" says what to grant", err)
	}
	r.log.Warn("several recorders would agree by the database alone", "error", err, "advice", `"recorder check" says what to grant`)
	return nil, nil
}

// leaseNamespace is where the Lease is, empty where there is to be none.
func (r *Recorder) leaseNamespace() (string, error) {
	inCluster := r.found.InCluster()
	switch {
	case r.cfg.Database == config.Embedded, r.cfg.LeaderElect == config.ElectDatabase, r.cfg.LeaderElect == config.ElectAuto && !inCluster:
		return "", nil
	case r.cfg.LeaseNamespace != "":
		return r.cfg.LeaseNamespace, nil
	case inCluster:
		return r.found.Namespace, nil
	}
	return "", errors.New("leader-elect lease outside a cluster needs a namespace for the Lease: name it with --lease-namespace")
}

// ownConfig is for what the recorder itself writes to the cluster: a Lease and Events, and nothing else.
func (r *Recorder) ownConfig() *rest.Config {
	config := rest.CopyConfig(r.found.REST)
	config.UserAgent = "kuberewind/" + version.String()
	return config
}

// fenced returns ErrFenced if the record is another recorder's. A database that cannot be asked is no reason to end: it is away, and the
// question comes again.
func (r *Recorder) fenced(ctx context.Context) error {
	err := r.sink.Holds(ctx)
	if err != nil && !errors.Is(err, postgres.ErrFenced) {
		r.log.Debug("it was not found out whether the record is still this recorder's; asking again", "error", config.Plain(err))
		return nil
	}
	return err
}
