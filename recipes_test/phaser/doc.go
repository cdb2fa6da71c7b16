// Package phaser holds tests only: what zkphaser promises.
package phaser
