// Package upgrade holds tests only: an older build and today's use the same paths at the same time.
package upgrade
