// Command page bundles the page: web/src and web/vendor become web/dist/app.js, app.css, index.html and icon.svg.
//
// The bundle is committed, unminified and under fixed names, so that go install works without Node and a review reads what is served.
// With -check nothing is written: the command fails if the committed bundle is not what the sources give.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/evanw/esbuild/pkg/api"
)

func main() {
	folder := flag.String("web", "../../web", "the folder web of the repository")
	check := flag.Bool("check", false, "compare with the committed bundle, and write nothing")
	flag.Parse()
	if err := run(*folder, *check); err != nil {
		fmt.Fprintln(os.Stderr, "web:", err)
		os.Exit(1)
	}
}

func run(folder string, check bool) error {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	made, err := bundle(folder)
	if err != nil {
		return err
	}
	for name, text := range made {
		if err := writeOrCompare(filepath.Join(folder, "dist", name), text, check); err != nil {
			return err
		}
	}
	return nil
}

// writeOrCompare writes a file of the bundle, or compares it.
func writeOrCompare(path string, text []byte, check bool) error {
	if !check {
		return os.WriteFile(path, text, 0o644)
	}
	committed, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Equal(committed, text) {
		return fmt.Errorf("%s is not what web/src gives: run make web and commit web/dist", path)
	}
	return nil
}

// bundle gives the files of web/dist by name.
func bundle(folder string) (map[string][]byte, error) {
	result := api.Build(api.BuildOptions{
		AbsWorkingDir: folder,
		EntryPoints:   []string{"src/app.tsx", "src/app.css"},
		Outdir:        "dist",
		Bundle:        true,
		Format:        api.FormatESModule,
		Target:        api.ES2022,
		Charset:       api.CharsetUTF8,
		JSX:           api.JSXAutomatic, JSXImportSource: "preact",
		NodePaths:     []string{filepath.Join(folder, "vendor")},
		LegalComments: api.LegalCommentsInline,
		LogLevel:      api.LogLevelWarning,
	})
	if len(result.Errors) > 0 {
		return nil, errors.New("the page does not build: see above")
	}
	made, err := copied(folder, "index.html", "icon.svg")
	if err != nil {
		return nil, err
	}
	for _, file := range result.OutputFiles {
		made[filepath.Base(file.Path)] = file.Contents
	}
	return made, nil
}

func copied(folder string, names ...string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(folder, "src", name))
		if err != nil {
			return nil, err
		}
		files[name] = text
	}
	return files, nil
}
