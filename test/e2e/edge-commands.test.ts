// Commands, their processes and output streams, and files of one real box over HTTP.
await import('./edge-files.ts')
await import('./edge-stream.ts')
await import('./edge-keys.ts')
// At the end, they suspend the box and wake it again.
await import('./edge-exec.ts')
await import('./edge-processes.ts')
