// Package zkphaser has a [Phaser]: a barrier whose parties come and go between phases.
package zkphaser
