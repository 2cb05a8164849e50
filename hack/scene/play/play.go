package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/kuberewind/kuberewind/internal/controlplane"
	"github.com/kuberewind/kuberewind/internal/scene"
)

// A player does what the steps say.
type player struct {
	plane  *controlplane.ControlPlane
	served *served
	pace   float64
}

// play does the steps, each at its time, and looks after each at what the API server says of itself.
func (p *player) play(ctx context.Context, steps []scene.Step) error {
	began := time.Now()
	for _, step := range steps {
		if err := p.until(ctx, began, step.At); err != nil {
			return err
		}
		if err := p.step(ctx, step); err != nil {
			return fmt.Errorf("at %s, %s: %w", step.At, step.Actor, err)
		}
		if err := p.served.look(ctx); err != nil {
			return err
		}
	}
	return nil
}

// story plays all of it, to its full length.
func (p *player) story(ctx context.Context) error {
	began := time.Now()
	if err := p.play(ctx, scene.Story()); err != nil {
		return err
	}
	return p.until(ctx, began, scene.Length)
}

// until waits for a time of the story.
func (p *player) until(ctx context.Context, began time.Time, at time.Duration) error {
	timer := time.NewTimer(time.Until(began.Add(time.Duration(float64(at) / p.pace))))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *player) step(ctx context.Context, s scene.Step) error {
	do := func() error { return p.kubectl(ctx, s.Actor, s.Input, s.Kubectl) }
	if s.Request != nil {
		do = func() error { return p.request(ctx, s.Actor, s.Request) }
	}
	if err := do(); err != nil {
		return err
	}
	for _, await := range s.Awaits {
		if err := p.kubectl(ctx, controlplane.AdminName, "", await); err != nil {
			return err
		}
	}
	return nil
}

func (p *player) kubectl(ctx context.Context, actor, input string, args []string) error {
	kubeconfig, err := p.plane.APIServer.Kubeconfig(actor)
	if err != nil {
		return err
	}
	say("%s: kubectl %s", actor, strings.Join(args, " "))
	cmd := exec.CommandContext(ctx, p.plane.Kubectl(), slices.Concat([]string{"--kubeconfig", kubeconfig, "--cache-dir", p.plane.Dir() + "/discovery"}, args)...)
	cmd.Stdin = strings.NewReader(input)
	if args[0] == "edit" {
		cmd.Env = append(os.Environ(), "KUBE_EDITOR=sed -i -e '"+input+"'")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

func (p *player) request(ctx context.Context, actor string, r *scene.Request) error {
	config, err := p.plane.APIServer.Config(actor)
	if err != nil {
		return err
	}
	config.UserAgent = r.Agent
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(r.Object), &object.Object); err != nil {
		return err
	}
	say("%s: %s %s/%s as %s", actor, r.Verb, object.GetKind(), object.GetName(), r.Agent)
	plural, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	return send(ctx, client.Resource(plural).Namespace(object.GetNamespace()), object, r)
}

func send(ctx context.Context, client dynamic.ResourceInterface, object *unstructured.Unstructured, r *scene.Request) error {
	var subresources []string
	if r.Status {
		subresources = []string{"status"}
	}
	var err error
	switch r.Verb {
	case scene.Create:
		_, err = client.Create(ctx, object, metav1.CreateOptions{FieldManager: r.Manager})
	case scene.Apply:
		_, err = client.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: r.Manager, Force: true}, subresources...)
	case scene.Patch:
		var text []byte
		if text, err = object.MarshalJSON(); err == nil {
			_, err = client.Patch(ctx, object.GetName(), types.MergePatchType, text, metav1.PatchOptions{FieldManager: r.Manager}, subresources...)
		}
	default:
		err = fmt.Errorf("unknown verb %q", r.Verb)
	}
	return err
}

// pack compresses a file.
func pack(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	packed, err := zstd.NewWriter(out, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		return err
	}
	_, err = io.Copy(packed, in)
	return errors.Join(err, packed.Close())
}
