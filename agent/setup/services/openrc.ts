// A service of OpenRC.
import { access, constants, rm, writeFile } from 'node:fs/promises'
import { type Layout, readIfExists } from '../layout.ts'
import { runProgram, tryProgram } from '../run-program.ts'
import { SetupError } from '../setup-error.ts'
import type { AgentUser } from '../user.ts'
import type { Service } from './service.ts'

const NAME = 'boxwood-agent'
const SCRIPT = `/etc/init.d/${NAME}`

/** Whether OpenRC has started this machine. */
export const isOpenrcRunning = (): Promise<boolean> =>
  Promise.all([access('/run/openrc/softlevel'), access('/sbin/openrc-run', constants.X_OK)]).then(
    () => true,
    () => false,
  )

const renderScript = ({ current, prefix, logFile }: Layout, user: AgentUser): string => `#!/sbin/openrc-run
# Created by the installer of Boxwood, which also removes it.
description="Boxwood agent"
command=/bin/sh
command_args="${current}/supervise.sh ${prefix}"
command_background=true
${user.name === null ? '' : `command_user=${user.name}\n`}pidfile=/run/${NAME}.pid
output_log=${logFile}
error_log=${logFile}
retry=TERM/30/KILL/5

depend() {
  use net dns logger
  after firewall
}
`

export function createOpenrcService(layout: Layout, user: AgentUser): Service {
  const isInstalled = async () => (await readIfExists(SCRIPT)) !== null
  return {
    kind: 'openrc',
    async install() {
      const existing = await readIfExists(SCRIPT)
      if (existing !== null && !existing.includes(` ${layout.prefix}"`))
        throw new SetupError(
          `${SCRIPT} belongs to an agent in another directory. Uninstall that agent first: run the installer with --uninstall --prefix and its directory.`,
        )
      await writeFile(SCRIPT, renderScript(layout, user), { mode: 0o755 })
      await runProgram(['rc-update', 'add', NAME, 'default'])
    },
    start: () => runProgram(['rc-service', NAME, 'start']),
    async stop() {
      if (!(await isInstalled())) return
      // It fails for a service that has crashed.
      await tryProgram(['rc-service', NAME, 'stop'])
      await tryProgram(['rc-service', NAME, 'zap'])
    },
    async remove() {
      if (!(await isInstalled())) return
      await tryProgram(['rc-update', 'del', NAME, 'default'])
      await rm(SCRIPT, { force: true })
    },
    getNotice: () => null,
  }
}
