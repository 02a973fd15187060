// Long tests of the box command with one coordinator and real boxes: gigabytes, and the life of a box.

await import('./cli-cp-gigabytes.ts')
// Deletes the first box.
await import('./cli-life.ts')
