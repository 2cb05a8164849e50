package filter_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/internal/filter"
)

var (
	pods        = schema.GroupResource{Resource: "pods"}
	deployments = schema.GroupResource{Group: "apps", Resource: "deployments"}
	nodes       = schema.GroupResource{Resource: "nodes"}
)

func TestRulesDecideByResourceNamespaceAndLabel(t *testing.T) {
	for _, c := range []struct {
		name             string
		include, exclude []string
		gr               schema.GroupResource
		namespace        string
		labels           map[string]string
		want             bool
	}{
		{name: "without rules everything passes", gr: pods, namespace: "a", want: true},
		{name: "an excluded resource does not pass", exclude: []string{"pods"}, gr: pods},
		{name: "another resource passes", exclude: []string{"pods"}, gr: deployments, want: true},
		{name: "a group pattern matches its resources", exclude: []string{"*.apps"}, gr: deployments},
		{name: "a trailing dot is the core group", exclude: []string{"*."}, gr: deployments, want: true},
		{name: "a trailing dot matches core resources", exclude: []string{"*."}, gr: pods},
		{name: "a namespace pattern", exclude: []string{"*/dev-*"}, gr: pods, namespace: "dev-1"},
		{name: "a namespace pattern does not match other namespaces", exclude: []string{"*/dev-*"}, gr: pods, namespace: "prod", want: true},
		{name: "a namespace pattern does not match cluster-scoped objects", exclude: []string{"*/dev-*"}, gr: nodes, want: true},
		{name: "a label selector", exclude: []string{"pods?tier in (a,b)"}, gr: pods, labels: map[string]string{"tier": "b"}},
		{name: "a label selector does not match other objects", exclude: []string{"pods?tier in (a,b)"}, gr: pods, want: true},
		{name: "an include rule excludes other resources", include: []string{"pods"}, gr: deployments},
		{name: "exclude wins over include", include: []string{"pods"}, exclude: []string{"pods/kube-system"}, gr: pods, namespace: "kube-system"},
		{name: "include by namespace", include: []string{"pods/a"}, gr: pods, namespace: "b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := filter.New(c.include, c.exclude)
			require.NoError(t, err)
			got := f.Resource(c.gr) && f.For(c.gr).Allows(c.namespace, c.labels)
			require.Equal(t, c.want, got)
		})
	}
}

func TestAPartialRuleDoesNotExcludeTheResource(t *testing.T) {
	f, err := filter.New(nil, []string{"pods/dev-*", "pods?noisy"})
	require.NoError(t, err)
	require.True(t, f.Resource(pods))
	require.True(t, f.For(pods).ByLabel())
	require.False(t, f.For(pods).Everything())
	require.True(t, f.For(deployments).Everything())
	require.Equal(t, "-pods/dev-* -pods?noisy", f.For(pods).String())
}

func TestTheErrorNamesAnInvalidRule(t *testing.T) {
	for _, text := range []string{"", "/ns", "pods/", "pods?a in (", "po[ds", "pods/[", "pods.[a", "leases.coordination.k8s.io,events", "pods/a,b", "pods /a"} {
		_, err := filter.New([]string{text}, nil)
		require.ErrorContains(t, err, text)
	}
}
