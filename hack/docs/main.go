// Command docs regenerates the tables of docs/reference.md.
package main

import (
	"fmt"
	"os"

	"github.com/kuberewind/kuberewind/internal/docs"
)

const page = "docs/reference.md"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
}

func run() error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	generated, err := docs.Generate(text)
	if err != nil {
		return err
	}
	return os.WriteFile(page, generated, 0o644)
}
