// Package record is for what several processes change together, and wait for: barriers, latches, phasers, wait groups.
package record
