// Attached commands, connections to ports, and terminals of one real box over HTTP and WebSocket.
await import('./edge-attach.ts')
await import('./edge-ports.ts')
// At the end, it suspends the box.
await import('./edge-terminal.ts')
