// Package get is kubectl's own get. Its transport answers from the record, at one instant.
package get
