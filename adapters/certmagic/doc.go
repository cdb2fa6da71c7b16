// Package zkcertmagic stores the certificates of github.com/caddyserver/certmagic.
package zkcertmagic
