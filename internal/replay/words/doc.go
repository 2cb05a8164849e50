// Package words formats changes for people, as a line or as part of a unified diff of YAML.
package words
