package printers_test

import (
	"fmt"
	"iter"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/internal/printers"
)

var instant = time.Date(2020, 1, 2, 12, 0, 0, 0, time.UTC)

func one(text string) iter.Seq2[string, []byte] {
	return maps.All(map[string][]byte{"key": []byte(text)})
}

// row returns the single row of the table of one object, by the names of its columns. No time passes while the table is
// made.
func row(t *testing.T, resource schema.GroupResource, definition, text string) map[string]string {
	t.Helper()
	cells := map[string]string{}
	synctest.Test(t, func(t *testing.T) {
		tables := printers.New(instant, func(schema.GroupResource) []byte {
			if definition == "" {
				return nil
			}
			return []byte(definition)
		})
		table, err := tables.Make(resource, one(text), metav1.IncludeMetadata)
		require.NoError(t, err)
		require.Len(t, table.Rows, 1)
		for i, column := range table.ColumnDefinitions {
			cells[column.Name] = fmt.Sprint(table.Rows[0].Cells[i])
		}
	})
	return cells
}

func core(resource string) schema.GroupResource { return schema.GroupResource{Resource: resource} }

func TestEveryAgeIsRelativeToTheInstant(t *testing.T) {
	pod := row(t, core("pods"), "", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","creationTimestamp":"2020-01-02T11:53:00Z"},"status":{"containerStatuses":[
		{"name":"c","restartCount":3,"image":"","imageID":"","ready":false,"lastState":{"terminated":{"exitCode":1,"finishedAt":"2020-01-02T11:58:00Z"}}}]}}`)
	require.Equal(t, "7m", pod["Age"])
	require.Equal(t, "3 (2m ago)", pod["Restarts"])

	job := `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a","creationTimestamp":"2020-01-02T11:53:00Z"},"status":{"startTime":"2020-01-02T11:55:00Z"%s}}`
	jobs := schema.GroupResource{Group: "batch", Resource: "jobs"}
	require.Equal(t, "5m", row(t, jobs, "", fmt.Sprintf(job, ""))["Duration"], "the Job is running")
	require.Equal(t, "3m", row(t, jobs, "", fmt.Sprintf(job, `,"completionTime":"2020-01-02T11:58:00Z","succeeded":1`))["Duration"], "the Job has ended")

	event := row(t, core("events"), "", `{"apiVersion":"v1","kind":"Event","metadata":{"name":"a"},"involvedObject":{"kind":"Pod","name":"a"},"lastTimestamp":"2020-01-02T11:59:00Z","count":2,"firstTimestamp":"2020-01-02T11:00:00Z"}`)
	require.Equal(t, "60s", event["Last Seen"])

	cron := row(t, schema.GroupResource{Group: "batch", Resource: "cronjobs"}, "", `{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"a"},"spec":{"schedule":"@daily"},"status":{"lastScheduleTime":"2020-01-02T00:00:00Z"}}`)
	require.Equal(t, "12h", cron["Last Schedule"])
	require.Equal(t, "<unknown>", cron["Age"], "a missing time stays missing")
}

const definition = `{"spec":{"versions":[
	{"name":"v1","additionalPrinterColumns":[{"name":"Size","type":"integer","jsonPath":".spec.size"},{"name":"Seen","type":"date","jsonPath":".status.seen"},
		{"name":"Text","type":"string","jsonPath":".status.seen"}]},
	{"name":"v2"}]}}`

func TestCustomResourcesHaveTheColumnsOfTheirVersion(t *testing.T) {
	widgets := schema.GroupResource{Group: "example.com", Resource: "widgets"}
	object := `{"apiVersion":"example.com/%s","kind":"Widget","metadata":{"name":"a","creationTimestamp":"2020-01-02T11:00:00Z"},"spec":{"size":3},"status":{"seen":"2020-01-02T11:59:30Z"}}`
	require.Equal(t, map[string]string{"Name": "a", "Size": "3", "Seen": "30s", "Text": "2020-01-02T11:59:30Z"}, row(t, widgets, definition, fmt.Sprintf(object, "v1")))
	require.Equal(t, map[string]string{"Name": "a", "Age": "60m"}, row(t, widgets, definition, fmt.Sprintf(object, "v2")), "the version names no columns")
	require.Equal(t, map[string]string{"Name": "a", "Age": "60m"}, row(t, widgets, "", fmt.Sprintf(object, "v1")), "there is no definition")
	require.Equal(t, map[string]string{"Name": "a", "Age": "60m"}, row(t, widgets, "no JSON", fmt.Sprintf(object, "v1")))
	beta := `{"spec":{"version":"v1","additionalPrinterColumns":[{"name":"Size","type":"integer","JSONPath":".spec.size"}]}}`
	require.Equal(t, map[string]string{"Name": "a", "Size": "3"}, row(t, widgets, beta, fmt.Sprintf(object, "v1")), "the spelling of v1beta1")
}

func TestTheScaleOfACustomResourceHasNoCellForADesiredZero(t *testing.T) {
	const scale = `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"a","creationTimestamp":"2020-01-02T11:53:00Z"},"spec":{},"status":{"replicas":0}}`
	require.Equal(t, map[string]string{"Name": "a", "Desired": "<nil>", "Available": "0", "Age": "7m"}, row(t, printers.CustomScales, "", scale))
	require.Equal(t, "0", row(t, schema.GroupResource{Group: "autoscaling", Resource: "scales"}, "", scale)["Desired"], "the Scale of a built-in kind has a cell")
}

func TestAnUnknownKindHasARowWithNameAndAge(t *testing.T) {
	gone := row(t, schema.GroupResource{Group: "extensions", Resource: "podsecuritypolicies"}, "",
		`{"apiVersion":"extensions/v1beta1","kind":"PodSecurityPolicy","metadata":{"name":"a","creationTimestamp":"2020-01-02T11:00:00Z"}}`)
	require.Equal(t, map[string]string{"Name": "a", "Age": "60m"}, gone)
	odd := row(t, core("pods"), "", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","creationTimestamp":"2020-01-02T11:00:00Z"},"spec":"a text"}`)
	require.Equal(t, "a", odd["Name"])
	require.Equal(t, "60m", odd["Age"])
	role := row(t, schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "roles"}, "",
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"a","creationTimestamp":"2020-01-02T11:00:00Z"}}`)
	require.Equal(t, map[string]string{"Name": "a", "Created At": "2020-01-02T11:00:00Z"}, role, "like the API server")
}

func TestFlowSchemasAreSortedByPrecedence(t *testing.T) {
	names := []string{"catch-all", "exempt", "probes"}
	precedences := []int{10000, 1, 2}
	objects := func(yield func(string, []byte) bool) {
		for i, name := range names {
			if !yield(name, fmt.Appendf(nil, `{"apiVersion":"flowcontrol.apiserver.k8s.io/v1","kind":"FlowSchema","metadata":{"name":%q},"spec":{"matchingPrecedence":%d,
				"priorityLevelConfiguration":{"name":"exempt"}}}`, name, precedences[i])) {
				return
			}
		}
	}
	table, err := printers.New(instant, nil).Make(schema.GroupResource{Group: "flowcontrol.apiserver.k8s.io", Resource: "flowschemas"}, objects, metav1.IncludeMetadata)
	require.NoError(t, err)
	var got []any
	for _, row := range table.Rows {
		got = append(got, row.Cells[0])
	}
	require.Equal(t, []any{"exempt", "probes", "catch-all"}, got)
}

func TestASecretRowShowsTheNumberOfHashedValues(t *testing.T) {
	secret := row(t, core("secrets"), "", `{"apiVersion":"v1","kind":"Secret","type":"Opaque","metadata":{"name":"a"},"data":{"x":"hmac-sha256:00","y":"eA=="}}`)
	require.Equal(t, "Opaque", secret["Type"])
	require.Equal(t, "2", secret["Data"])
}

func TestRowsCarryTheServedObject(t *testing.T) {
	text := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","creationTimestamp":"2020-01-02T11:00:00Z"},"status":{"startTime":"2020-01-02T11:00:00Z"}}`
	table, err := printers.New(instant, nil).Make(core("pods"), one(text), metav1.IncludeObject)
	require.NoError(t, err)
	carried, err := table.Rows[0].Object.Object.(*unstructured.Unstructured).MarshalJSON()
	require.NoError(t, err)
	require.JSONEq(t, text, string(carried), "no time is shifted")
	_, err = printers.New(instant, nil).Make(core("pods"), one("no object"), metav1.IncludeMetadata)
	require.ErrorContains(t, err, "pods key")
}

func TestAnEmptyTableHasNoRows(t *testing.T) {
	table, err := printers.New(instant, nil).Make(core("pods"), maps.All(map[string][]byte{}), metav1.IncludeMetadata)
	require.NoError(t, err)
	require.Empty(t, table.Rows)
}
