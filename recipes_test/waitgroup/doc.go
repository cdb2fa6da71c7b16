// Package waitgroup holds tests only: what zkwaitgroup promises.
package waitgroup
