// The box command with one coordinator and real boxes.
await import('./cli-cp.ts')
await import('./cli-prompts.ts')
// Stops the first box.
await import('./cli-usage.ts')
