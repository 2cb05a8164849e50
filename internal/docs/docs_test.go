package docs_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/docs"
)

func TestTheTablesOfTheDocsMatchTheCode(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference.md")
	require.NoError(t, err)
	generated, err := docs.Generate(page)
	require.NoError(t, err)
	require.Equal(t, string(generated), string(page), "run make generate")
}

func TestTheTroubleshootingPageListsTheExitCodes(t *testing.T) {
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	require.NoError(t, err)
	for _, code := range []string{"0 [|] done", "1 [|] failed while running", "2 [|] wrong usage or configuration", "3 [|] the cluster or the database cannot be used", "4 [|] another recorder has taken over"} {
		require.Regexp(t, code, string(page))
	}
}

func TestEveryMakeTargetInTheDocsExists(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	require.NoError(t, err)
	named := regexp.MustCompile("(?m)(?:`|^)make ([a-z-]+)")
	for _, path := range []string{"../../README.md", "../../docs/developing.md", "../../docs/database.md", "../../docs/sizing.md", "../../docs/performance.md", "../../docs/install.md", "../../bench/METHODOLOGY.md", "../../CONTRIBUTING.md"} {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, target := range named.FindAllStringSubmatch(string(text), -1) {
			require.Regexp(t, `(?m)^`+target[1]+`:`, string(makefile), path)
		}
	}
}
