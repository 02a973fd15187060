// A mount namespace for each test file: what it mounts disappears with it, also when it is killed, and a fault in a program that it
// starts as root does not change the mounts of the machine.
import { spawnSync } from 'node:child_process'

/** slave: the file sees what the machine mounts and unmounts meanwhile, and not the reverse. */
const PREFIX = ['unshare', '--mount', '--propagation', 'slave', '--']

/** The arguments before the command of a test file. Empty where this user cannot create a mount namespace. */
export function getOwnMountsPrefix(): string[] {
  const [program = '', ...args] = PREFIX
  return spawnSync(program, [...args, 'true'], { stdio: 'ignore' }).status === 0 ? PREFIX : []
}
