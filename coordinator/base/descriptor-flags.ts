// Reads the flags of an open file of this process.
import { readFileSync } from 'node:fs'

/** The flags as open(2) has them, with O_CLOEXEC; null when /proc does not show them. Throws when the descriptor is closed. */
export function readDescriptorFlags(fd: number): number | null {
  const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1]
  return flags === undefined ? null : Number.parseInt(flags, 8)
}
