// Package words formats changes for people, on one line or as a unified diff of YAML.
package words
