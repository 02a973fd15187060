// Programs that a test needs and that may be missing.
import { spawnSync } from 'node:child_process'

/** Whether the PATH contains `program`. Also finds programs in /usr/sbin, such as sshd. */
export const isInstalled = (program: string): boolean =>
  spawnSync('sh', ['-c', `PATH=$PATH:/usr/sbin command -v ${program}`], { stdio: 'ignore' }).status === 0
