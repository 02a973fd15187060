// The flags of Node with which boxes run the agent.

/**
 * Keep the agent's heap small. Without the native spawner each command forks the agent, which costs about 60 µs per
 * MiB of memory that the agent has written to (the bundle halves that memory, compared with separate source files).
 * One GC thread collects a small heap faster than several threads that must be woken first. Growth by 20 % per
 * collection replaces V8's default, which makes the heap several times as large after thousands of connections. The heap
 * has 17 MiB after the start: a first collection at 24 MiB does not delay the first command.
 */
export const NODE_FLAGS = [
  '--max-semi-space-size=1',
  '--heap-growing-percent=20',
  '--single-threaded-gc',
  '--initial-old-space-size=24',
] as const
