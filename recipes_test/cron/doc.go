// Package cron holds tests only: what zkcron promises.
package cron
