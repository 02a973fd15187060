// Closes the descriptors that this process has inherited, such as a pipe of the shell that started it. Boxes outlive the
// coordinator and would keep them open.
import { closeSync, readdirSync, readFileSync } from 'node:fs'

const LAST_STANDARD_FD = 2
/** O_CLOEXEC in the flags of /proc/PID/fdinfo. */
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
    const [, flags] = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8')) ?? []
    return flags !== undefined && (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) === 0
  } catch {
    // The descriptor with which the directory was read is closed.
    return false
  }
}
