package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// A churn does to a cluster what users do. The seed decides the actions. It does not decide when controllers answer.
type churn struct {
	client      kubernetes.Interface
	random      *rand.Rand
	deployments []string
	made        int // numbers given to new objects
}

// namespace holds all objects of the churn.
const namespace = "load"

func newChurn(client kubernetes.Interface, seed uint64) *churn {
	return &churn{client: client, random: rand.New(rand.NewPCG(seed, 5))}
}

// populate makes Deployments and ConfigMaps, and waits until all Pods run.
func (c *churn) populate(ctx context.Context, n int) error {
	if _, err := c.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	for i := range n {
		name := fmt.Sprintf("service-%d", i)
		if _, err := c.client.AppsV1().Deployments(namespace).Create(ctx, deployment(name, int32(1+c.random.IntN(9))), metav1.CreateOptions{}); err != nil {
			return err
		}
		settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"log-level": "info"}}
		if _, err := c.client.CoreV1().ConfigMaps(namespace).Create(ctx, settings, metav1.CreateOptions{}); err != nil {
			return err
		}
		c.deployments = append(c.deployments, name)
	}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		all, err := c.client.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		available := 0
		for _, d := range all.Items {
			if d.Status.AvailableReplicas == *d.Spec.Replicas {
				available++
			}
		}
		if available == n {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d Deployments are available: %w", available, n, ctx.Err())
		}
	}
}

// template returns the Pod template for a name. Each name has its own settings, as real services have.
func template(name string, labels map[string]string, restart corev1.RestartPolicy) corev1.PodTemplateSpec {
	own := sha256.Sum256([]byte(name))
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{}}}
	probe.TCPSocket.Port.IntVal = 8080
	container := corev1.Container{
		Name: "web", Image: "registry.example.com/" + name + ":1.0.0", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}, LivenessProbe: probe, ReadinessProbe: probe,
		Env: []corev1.EnvVar{{Name: "DATABASE_HOST", Value: fmt.Sprintf("pg-%x.databases.svc.cluster.local", own[:3])}, {Name: "TRACING_ENDPOINT", Value: fmt.Sprintf("https://%x.collector.example.com", own[4:10])}},
	}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{container}, RestartPolicy: restart},
	}
}

func deployment(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(name, labels, corev1.RestartPolicyAlways)},
	}
}

// pause is the time between two actions.
const pause = 200 * time.Millisecond

// run does one action after the other until the time is over. An object that is gone meanwhile is no error.
func (c *churn) run(ctx context.Context, duration time.Duration) error {
	deeds := []func(context.Context) error{c.rollOut, c.rollOut, c.rollOut, c.scale, c.scale, c.runJob, c.runJob, c.deletePod, c.configure, c.replaceNode}
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	end := time.After(duration)
	for {
		select {
		case <-ticker.C:
		case <-end:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
		err := deeds[c.random.IntN(len(deeds))](ctx)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
}

func (c *churn) any() string { return c.deployments[c.random.IntN(len(c.deployments))] }

func (c *churn) patch(ctx context.Context, name, text string) error {
	_, err := c.client.AppsV1().Deployments(namespace).Patch(ctx, name, types.StrategicMergePatchType, []byte(text), metav1.PatchOptions{FieldManager: "benchdata"})
	return err
}

func (c *churn) rollOut(ctx context.Context) error {
	c.made++
	name := c.any()
	return c.patch(ctx, name, fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"registry.example.com/%s:1.0.%d"}]}}}}`, name, c.made))
}

func (c *churn) scale(ctx context.Context) error {
	return c.patch(ctx, c.any(), fmt.Sprintf(`{"spec":{"replicas":%d}}`, 1+c.random.IntN(9)))
}

func (c *churn) runJob(ctx context.Context) error {
	c.made++
	once, stays := int32(1), int32(30)
	name := fmt.Sprintf("batch-%d", c.made)
	_, err := c.client.BatchV1().Jobs(namespace).Create(ctx, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{
			Completions: &once, TTLSecondsAfterFinished: &stays, Template: template(name, map[string]string{"job": name}, corev1.RestartPolicyNever),
		},
	}, metav1.CreateOptions{})
	return err
}

func (c *churn) deletePod(ctx context.Context) error {
	pods, err := c.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + c.any()})
	if err != nil || len(pods.Items) == 0 {
		return err
	}
	return c.client.CoreV1().Pods(namespace).Delete(ctx, pods.Items[0].Name, metav1.DeleteOptions{})
}

func (c *churn) configure(ctx context.Context) error {
	c.made++
	text := fmt.Appendf(nil, `{"data":{"release":"%d"}}`, c.made)
	_, err := c.client.CoreV1().ConfigMaps(namespace).Patch(ctx, c.any(), types.MergePatchType, text, metav1.PatchOptions{FieldManager: "benchdata"})
	return err
}

// replaceNode deletes a Node with all its Pods, and adds another Node.
func (c *churn) replaceNode(ctx context.Context) error {
	nodes, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil || len(nodes.Items) == 0 {
		return err
	}
	old := nodes.Items[c.random.IntN(len(nodes.Items))]
	c.made++
	fresh := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-x%d", c.made), Labels: old.Labels}, Status: corev1.NodeStatus{
		Capacity: old.Status.Capacity, Allocatable: old.Status.Allocatable,
	}}
	fresh.Labels[corev1.LabelHostname] = fresh.Name
	if _, err := c.client.CoreV1().Nodes().Create(ctx, fresh, metav1.CreateOptions{}); err != nil {
		return err
	}
	return c.client.CoreV1().Nodes().Delete(ctx, old.Name, metav1.DeleteOptions{})
}
