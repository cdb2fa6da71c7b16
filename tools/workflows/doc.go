// Package workflows holds tests only: the workflow files of the forge are valid, and what they run is there.
package workflows
