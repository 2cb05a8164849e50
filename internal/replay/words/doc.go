// Package words says what changed. A change is a line, or part of a unified difference of YAML.
package words
