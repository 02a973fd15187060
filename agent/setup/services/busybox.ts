// A line in /etc/inittab, with which the init of busybox starts the agent and restarts its supervisor.
import { readFile, readlink, rename, stat, writeFile } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Layout } from '../layout.ts'
import { findSupervisors, terminate } from '../processes.ts'
import type { AgentUser } from '../user.ts'
import type { Service } from './service.ts'

const INITTAB = '/etc/inittab'
const STOP_GRACE_MS = 15_000

/** Whether busybox has started this machine and reads an inittab. In a container, pid 1 may be another applet. */
export async function isBusyboxRunning(): Promise<boolean> {
  try {
    if (basename(await readlink('/proc/1/exe')) !== 'busybox') return false
    const applet = (await readFile('/proc/1/comm', 'utf8')).trim()
    return ['init', 'linuxrc'].includes(applet) && (await stat(INITTAB)).isFile()
  } catch (error) {
    if (['ENOENT', 'EACCES', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) return false
    throw error
  }
}

export function createBusyboxService({ prefix, current, logFile }: Layout, user: AgentUser): Service {
  const supervise = `/bin/sh ${current}/supervise.sh ${prefix}`
  const command =
    user.name === null ? `exec ${supervise}` : `exec su -s /bin/sh ${user.name} -c "${supervise}"`
  const line = `::respawn:/bin/sh -c '${command}' >>${logFile} 2>&1\n`

  async function replaceLine(text: string): Promise<void> {
    const inittab = await readFile(INITTAB, 'utf8')
    const others = inittab
      .split(/(?<=\n)/)
      .filter((entry) => !entry.includes(` ${prefix}'`) && !entry.includes(` ${prefix}"`))
    const separator = text === '' || others.length === 0 || others.at(-1)?.endsWith('\n') ? '' : '\n'
    const changed = others.join('') + separator + text
    if (changed === inittab) return
    const { mode } = await stat(INITTAB)
    await writeFile(`${INITTAB}.new`, changed, { mode, flush: true })
    await rename(`${INITTAB}.new`, INITTAB)
    // init reads its inittab again.
    process.kill(1, 'SIGHUP')
  }

  return {
    kind: 'busybox',
    install: async () => undefined,
    start: () => replaceLine(line),
    async stop() {
      await replaceLine('')
      await terminate(() => findSupervisors(prefix), STOP_GRACE_MS)
    },
    remove: () => replaceLine(''),
    getNotice: () => null,
  }
}
