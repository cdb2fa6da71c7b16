// Package zkphaser has a [Phaser]: a barrier whose parties may change between phases.
package zkphaser
