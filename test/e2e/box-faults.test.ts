// Faults of one real box: disconnects while commands start, and kill -9 of its agent.

// Expects that the box has no other processes.
await import('./edge-start-during-disconnects.ts')
await import('./cli-exec-agent-killed.ts')
await import('./edge-terminal-agent-killed.ts')
