// The command history of one real box over HTTP.
await import('./commands-access.ts')
// Expects an empty history: the tests of access have deleted theirs.
await import('./commands.ts')
// Deletes the box.
await import('./commands-lifecycle.ts')
