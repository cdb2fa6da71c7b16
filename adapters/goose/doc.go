// Package zkgoose locks the migrations of github.com/pressly/goose/v3.
package zkgoose
