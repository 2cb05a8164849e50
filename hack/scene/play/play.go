// Package play plays the steps of a scene on a control plane: by kubectl, or by a client of its own.
package play

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/kuberewind/kuberewind/internal/controlplane"
	"github.com/kuberewind/kuberewind/internal/scene"
)

// A Player runs the steps.
type Player struct {
	Plane *controlplane.ControlPlane
	Pace  float64                     // seconds of the scene for each real second
	Log   io.Writer                   // a line for each step
	After func(context.Context) error // runs after each step; nil for none
}

// Steps runs the steps, each at its time.
func (p *Player) Steps(ctx context.Context, steps []scene.Step) error {
	began := time.Now()
	for _, step := range steps {
		if err := p.until(ctx, began, step.At); err != nil {
			return err
		}
		if err := p.step(ctx, step); err != nil {
			return fmt.Errorf("at %s, %s: %w", step.At, step.Actor, err)
		}
		if p.After == nil {
			continue
		}
		if err := p.After(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Story plays the whole story, to its full length.
func (p *Player) Story(ctx context.Context) error {
	began := time.Now()
	if err := p.Steps(ctx, scene.Story()); err != nil {
		return err
	}
	return p.until(ctx, began, scene.Length)
}

// until waits until the story has come to a time.
func (p *Player) until(ctx context.Context, began time.Time, at time.Duration) error {
	timer := time.NewTimer(time.Until(began.Add(time.Duration(float64(at) / p.Pace))))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *Player) step(ctx context.Context, s scene.Step) error {
	do := func() error { return p.Kubectl(ctx, s.Actor, s.Input, s.Kubectl) }
	if s.Request != nil {
		do = func() error { return p.request(ctx, s.Actor, s.Request) }
	}
	if err := do(); err != nil {
		return err
	}
	for _, await := range s.Awaits {
		if err := p.Kubectl(ctx, controlplane.AdminName, "", await); err != nil {
			return err
		}
	}
	return nil
}

// Kubectl runs kubectl as a user. For "edit", the input is the sed script that edits the object.
func (p *Player) Kubectl(ctx context.Context, actor, input string, args []string) error {
	kubeconfig, err := p.Plane.APIServer.Kubeconfig(actor)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.Log, "%s: kubectl %s\n", actor, strings.Join(args, " "))
	cmd := exec.CommandContext(ctx, p.Plane.Kubectl(), slices.Concat([]string{"--kubeconfig", kubeconfig, "--cache-dir", p.Plane.Dir() + "/discovery"}, args)...)
	cmd.Stdin = strings.NewReader(input)
	if args[0] == "edit" {
		cmd.Env = append(os.Environ(), "KUBE_EDITOR=sed -i -e '"+input+"'")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

func (p *Player) request(ctx context.Context, actor string, r *scene.Request) error {
	config, err := p.Plane.APIServer.Config(actor)
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
	fmt.Fprintf(p.Log, "%s: %s %s/%s as %s\n", actor, r.Verb, object.GetKind(), object.GetName(), r.Agent)
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
