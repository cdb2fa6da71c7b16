// Package zkgroup holds tests only: what zkgroup promises.
package zkgroup
