// The native parts, which are compiled from agent/exec/native, and the names of their files.
import { createHash } from 'node:crypto'

export type NativePart = {
  /** File names in agent/exec/native. */
  source: string
  headers: readonly string[]
  /** The name of the compiled file is this prefix, the hash of the sources, and the extension. */
  prefix: string
  extension: string
  /** The name beside the agent bundle on a box. It needs no hash: all files are copied together. */
  bundledFileName: string
}

/** Shared by the programs that stay with a process when the agent is restarted. */
const RUNNER_HEADER = 'runner.h'

export const NATIVE_PARTS = {
  /** The native addon that starts processes. */
  spawner: {
    source: 'spawn.c',
    headers: [],
    prefix: 'spawn-',
    extension: '.node',
    bundledFileName: 'spawn.node',
  },
  /** The parent process of a detached command. */
  runner: {
    source: 'run.c',
    headers: [RUNNER_HEADER],
    prefix: 'run-',
    extension: '',
    bundledFileName: 'run',
  },
  /** The program that executes the init of a local box. */
  confinement: {
    source: 'confine.c',
    headers: [],
    prefix: 'confine-',
    extension: '',
    bundledFileName: 'confine',
  },
  /** The parent process of the program of a terminal session. */
  terminalHost: {
    source: 'terminal.c',
    headers: [RUNNER_HEADER],
    prefix: 'terminal-',
    extension: '',
    bundledFileName: 'terminal-host',
  },
} as const satisfies Record<string, NativePart>

/**
 * The name of the compiled file. The hash of the sources prevents the use of one that was compiled from others.
 * @param read returns the content of a file of agent/exec/native
 */
export function getNativeFileName(
  { source, headers, prefix, extension }: NativePart,
  read: (name: string) => Uint8Array,
): string {
  const hash = createHash('sha256')
  for (const name of [source, ...headers]) hash.update(read(name))
  return `${prefix}${hash.digest('hex').slice(0, 16)}${extension}`
}
