// Package output holds the forms of commands' output: text, wide and JSON, times, and progress.
package output
