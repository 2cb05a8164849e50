package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/redact"
	"github.com/kuberewind/kuberewind/internal/render"
	"github.com/kuberewind/kuberewind/internal/replay/entries"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/output"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/patch"
)

// The values of clusterResource.Status.
const (
	statusEqual     = "equal"
	statusDifferent = "different"
	statusUnproven  = "unproven"
)

// clusterResource is the result of comparing a stream with a list.
type clusterResource struct {
	Group           string `json:"group"`
	Resource        string `json:"resource"`
	Scope           string `json:"scope"`
	Status          string `json:"status"`
	Objects         int    `json:"objects"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	Masked          bool   `json:"masked"`
	Text            string `json:"text,omitempty"`

	findings []string
}

// comparer compares the streams of a record with the lists of a cluster.
type comparer struct {
	rec       *env.Record
	client    *kube.Client
	redaction *redaction
	gaps      map[int32]*history.Gap // open gaps
	timeout   time.Duration
}

// comparisonsAtOnce limits the load on the API server, and the memory, because each comparison holds a list.
const comparisonsAtOnce = 4

func (v *verifyCommand) cluster(ctx context.Context, rec *env.Record, report *Report) error {
	c, err := v.comparer(ctx, rec)
	if err != nil {
		return err
	}
	defer c.client.Close()
	streams, err := rec.Streams(ctx)
	if err != nil {
		return err
	}
	progress := v.env.Progress("comparing with the cluster")
	defer progress.End()
	var mu sync.Mutex // protects report and progress
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(comparisonsAtOnce)
	for i := range streams {
		g.Go(func() error {
			r, err := c.compare(ctx, &streams[i])
			if err != nil {
				return fmt.Errorf("compare %s: %w", streams[i].String(), err)
			}
			mu.Lock()
			defer mu.Unlock()
			progress.End()
			for _, text := range r.findings {
				v.found(report, verifyFinding{Check: checkCluster, Text: text})
			}
			report.unchecked = report.unchecked || r.Status == statusUnproven
			report.Resources = append(report.Resources, r)
			progress.Update(history.Progress{Stage: "resources", Done: int64(len(report.Resources)), Total: int64(len(streams))})
			return nil
		})
	}
	err = g.Wait()
	sortResources(report.Resources)
	return err
}

func (v *verifyCommand) comparer(ctx context.Context, rec *env.Record) (*comparer, error) {
	config, err := kube.LoadConfig(kube.ConfigOptions{Kubeconfig: *v.env.Config.KubeConfig, Context: *v.env.Config.Context})
	if err != nil {
		return nil, err
	}
	client, err := kube.NewClient(config.REST, kube.Options{})
	if err != nil {
		return nil, err
	}
	c := &comparer{rec: rec, client: client, timeout: v.timeout, gaps: map[int32]*history.Gap{}}
	if err := c.prepare(ctx, v); err != nil {
		client.Close()
		return nil, err
	}
	return c, nil
}

func (c *comparer) prepare(ctx context.Context, v *verifyCommand) error {
	uid, err := c.client.ClusterUID(ctx)
	if err != nil {
		return err
	}
	if known := c.rec.Cluster(); string(uid) != known.UID {
		return fmt.Errorf("the cluster at %s is not the cluster %q of the record: its UID is %s, not %s; select the cluster with --context or --kubeconfig",
			c.client.Host(), known.Name, uid, known.UID)
	}
	gaps, err := c.rec.Completeness().Gaps(ctx, history.Scope{})
	if err != nil {
		return err
	}
	for i := range gaps {
		if gaps[i].ToAt.IsZero() {
			c.gaps[gaps[i].Stream.ID] = &gaps[i]
		}
	}
	epochs, err := c.rec.Completeness().Epochs(ctx)
	if err != nil {
		return err
	}
	if len(epochs) == 0 {
		return errors.New("the record holds no configuration of a recorder")
	}
	keyFile := v.keyFile
	if keyFile == "" {
		keyFile = filepath.Join(v.env.DataDir, "redaction.key")
	}
	fingerprint, err := c.fingerprint(ctx)
	if err != nil {
		return err
	}
	c.redaction, err = newRedaction(epochs[len(epochs)-1].Config, keyFile, v.keyFile != "", c.rec.Cluster().UID, fingerprint)
	return err
}

// fingerprint returns the fingerprint of the recorder's key; nil if this login may not read it.
func (c *comparer) fingerprint(ctx context.Context) (fingerprint []byte, err error) {
	err = c.rec.Pool().QueryRow(ctx, `SELECT key_fingerprint FROM kuberewind.clusters WHERE cluster = $1`, c.rec.Cluster().Number).Scan(&fingerprint)
	if denied(err) {
		return nil, nil
	}
	return fingerprint, err
}

// redaction converts objects of the server to the form of the record.
type redaction struct {
	redactor *redact.Redactor
	masked   bool // the key is not known, so only the presence of hashes is compared
}

// newRedaction reads the recorder's configuration of redaction. A key file that the user named must be readable. If the
// fingerprint is known, the key must match it. A key file in the default place is used only if it matches the fingerprint.
func newRedaction(config []byte, keyFile string, named bool, clusterUID string, fingerprint []byte) (*redaction, error) {
	var settings struct {
		SecretValues string   `json:"secret-values"`
		Redact       []string `json:"redact"`
	}
	if err := json.Unmarshal(config, &settings); err != nil {
		return nil, fmt.Errorf("read the recorder's configuration from the record: %w", err)
	}
	paths, err := redact.ParsePaths(settings.Redact)
	if err != nil {
		return nil, fmt.Errorf("read the recorder's configuration from the record: %w", err)
	}
	file, err := redact.ReadKey(keyFile)
	if err != nil && named {
		return nil, err
	}
	key := file.Of(clusterUID)
	right := err == nil && bytes.Equal(key.Fingerprint(), fingerprint)
	if named && fingerprint != nil && !right {
		return nil, fmt.Errorf("redaction key %s is not the recorder's key: name that key with --redaction-key-file, or omit the flag to compare the values of Secrets masked", keyFile)
	}
	r := &redaction{masked: !right && (!named || fingerprint != nil)}
	r.redactor, err = redact.New(key, redact.Secrets(settings.SecretValues), paths)
	return r, err
}

// compare lists a stream's resource, and compares the record with the list.
func (c *comparer) compare(ctx context.Context, s *history.Stream) (clusterResource, error) {
	r := clusterResource{Group: s.Group, Resource: s.Resource, Scope: s.Scope, Status: statusUnproven}
	if g := c.gaps[s.ID]; g != nil {
		r.Text = fmt.Sprintf("it has an open gap: %s", entries.Reason(g))
		return r, nil
	}
	live, err := c.list(ctx, s)
	switch {
	case ctx.Err() != nil:
		return r, err
	case err != nil:
		r.Text = fmt.Sprintf("listing it failed: %v", err)
		if apierrors.IsNotFound(err) {
			r.Text = "the cluster no longer serves it"
		}
		return r, nil
	}
	r.Objects, r.ResourceVersion, r.Masked = len(live.objects), live.rv, live.masked
	if len(live.undecodable) > 0 {
		r.Text = fmt.Sprintf("decoding part of the list failed: %v", live.undecodable[0])
		return r, nil
	}
	differences, reached, err := c.compareUntilReached(ctx, s, live)
	switch {
	case err != nil:
		return r, err
	case len(differences) == 0:
		r.Status = statusEqual
	case !reached:
		r.Text = fmt.Sprintf("the record has not reached resource version %s of the list within %s; is a recorder running? %d objects differ from the list, the first: %s",
			live.rv, c.timeout, len(differences), differences[0])
		return r, nil
	default:
		r.Status = statusDifferent
		r.Text = fmt.Sprintf("%d objects differ", len(differences))
		r.findings = differences
	}
	if s.Filter != "" && r.Status == statusEqual {
		r.Text = "recorded with a filter: the recorded objects are equal; the filtered objects were not compared"
	}
	return r, nil
}

// comparesEvery is the interval of comparisons until the record reaches the list.
const comparesEvery = time.Second

// compareUntilReached compares until the record equals the list, or reaches the list's resource version, or the time is over. If the end
// of the record equals the list, that proves as much as the state at the list's version: then nothing changed in between.
func (c *comparer) compareUntilReached(ctx context.Context, s *history.Stream, live *listed) (differences []string, reached bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout+time.Minute, errors.New("the comparison took too long"))
	defer cancel()
	deadline := time.NewTimer(c.timeout)
	defer deadline.Stop()
	ticker := time.NewTicker(comparesEvery)
	defer ticker.Stop()
	for last := int64(-1); ; {
		now, err := c.stream(ctx, s.ID)
		if err != nil {
			return nil, false, err
		}
		reached = !delta.Precedes(now.Position, live.rv) || !delta.Precedes(now.LastRV, live.rv)
		at := history.Now()
		if reached {
			at = history.AtRV(live.rv)
		}
		if reached || now.LastSeq != last {
			if differences, err = c.against(ctx, s, at, live); err != nil {
				return nil, false, err
			}
		}
		if last = now.LastSeq; reached || len(differences) == 0 {
			return differences, reached, nil
		}
		select {
		case <-ticker.C:
		case <-deadline.C:
			return differences, false, nil
		case <-ctx.Done():
			return nil, false, context.Cause(ctx)
		}
	}
}

func (c *comparer) stream(ctx context.Context, id int32) (*history.Stream, error) {
	streams, err := c.rec.Streams(ctx)
	if err != nil {
		return nil, err
	}
	for i := range streams {
		if streams[i].ID == id {
			return &streams[i], nil
		}
	}
	return nil, fmt.Errorf("stream %d no longer exists in the record", id)
}

// against returns a line for each object that differs between the record and the list.
func (c *comparer) against(ctx context.Context, s *history.Stream, at history.Instant, live *listed) ([]string, error) {
	scope := history.Scope{Streams: []int32{s.ID}}
	point, err := c.rec.Resolve(ctx, at, scope)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex // protects differences and seen
	var differences []string
	seen := map[string]bool{}
	differ := func(namespace, name, format string, args ...any) {
		differences = append(differences, fmt.Sprintf("%s %s at resource version %s: ", s.GroupResource(), output.ObjectName(namespace, name), live.rv)+fmt.Sprintf(format, args...))
	}
	emit := func(o history.Object) error {
		doc := o.Doc
		if live.masked {
			doc = mask(doc)
		}
		digest := patch.Digest(doc)
		mu.Lock()
		defer mu.Unlock()
		is, known := live.objects[o.UID]
		seen[o.UID] = true
		switch {
		case !known:
			differ(o.Namespace, o.Name, "the record holds it (seq %d), the cluster does not", o.Seq)
		case is.digest != digest && is.rv != o.RV:
			differ(o.Namespace, o.Name, "the record holds its resource version %s (seq %d), the cluster %s", o.RV, o.Seq, is.rv)
		case is.digest != digest:
			differ(o.Namespace, o.Name, "the record holds another content (seq %d)", o.Seq)
		}
		return nil
	}
	damaged := func(d *history.DamagedError) {
		mu.Lock()
		defer mu.Unlock()
		for uid, o := range live.objects {
			if o.namespace == d.Namespace && o.name == d.Name {
				seen[uid] = true
			}
		}
		differ(d.Namespace, d.Name, "%v", d)
	}
	if _, err := c.rec.Rebuild(ctx, point, scope, history.RebuildOptions{Damaged: damaged}, emit); err != nil {
		return nil, err
	}
	for uid, o := range live.objects {
		if !seen[uid] && s.Filter == "" {
			differ(o.namespace, o.name, "the cluster holds it, the record does not")
		}
	}
	return differences, nil
}

func printResources(out io.Writer, all []clusterResource) {
	objects, equal := 0, 0
	masked := false
	for _, r := range all {
		name := (&history.Stream{Group: r.Group, Resource: r.Resource, Scope: r.Scope}).String()
		if r.Status == statusEqual {
			equal++
			objects += r.Objects
		}
		masked = masked || r.Masked
		if r.Text != "" {
			fmt.Fprintln(out, render.Line(fmt.Sprintf("cluster: %s: %s: %s", name, r.Status, r.Text)))
		}
	}
	fmt.Fprintf(out, "cluster: %d of %d resources equal the live lists, with %d objects\n", equal, len(all), objects)
	if masked {
		fmt.Fprintln(out, "cluster: values of Secrets were compared masked, because the recorder's key was not found (--redaction-key-file)")
	}
}
