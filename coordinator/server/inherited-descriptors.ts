// Closes the descriptors that this process has inherited, such as a pipe of the shell that started it. Boxes outlive the
// coordinator and would keep them open.
import { closeSync, readdirSync } from 'node:fs'
import { readDescriptorFlags } from '../base/descriptor-flags.ts'

const LAST_STANDARD_FD = 2
/** O_CLOEXEC, which Node does not export. */
const CLOSE_ON_EXEC = 0o2000000

/**
 * Closes those that programs would inherit from this process. Call before anything is opened. Node sets close-on-exec on all
 * descriptors that it opens, and at its start on the inherited ones up to the first gap above 15, among them the socket of
 * systemd and the IPC channel of `box up`.
 */
export function closeInheritedDescriptors(): void {
  for (const name of readdirSync('/proc/self/fd')) {
    const fd = Number(name)
    if (fd > LAST_STANDARD_FD && isInheritable(fd)) closeSync(fd)
  }
}

function isInheritable(fd: number): boolean {
  try {
    const flags = readDescriptorFlags(fd)
    return flags !== null && (flags & CLOSE_ON_EXEC) === 0
  } catch {
    // The descriptor with which the directory was read is closed.
    return false
  }
}
