// A systemd unit of the system or of a user.
import { access, rm, writeFile } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { type Layout, readIfExists } from '../layout.ts'
import { type Result, runProgram, tryProgram } from '../run-program.ts'
import { SetupError } from '../setup-error.ts'
import type { AgentUser } from '../user.ts'
import type { Service } from './service.ts'

const UNIT = 'boxwood-agent.service'
const SYSTEM_UNIT_DIR = '/etc/systemd/system'

export type SystemdScope = 'system' | 'user'

/** Checks what sd_booted(3) checks. */
export const isSystemdRunning = (): Promise<boolean> =>
  access('/run/systemd/system').then(
    () => true,
    () => false,
  )

/** Whether this process can use a service manager of its user. */
export async function isUserManagerRunning(): Promise<boolean> {
  const { status } = await tryProgram(['systemctl', '--user', 'show-environment'], userEnv())
  return status === 0
}

/** A session of su has no XDG_RUNTIME_DIR, also where the user's manager runs. */
const userEnv = (): Record<string, string | undefined> => ({
  XDG_RUNTIME_DIR: `/run/user/${process.getuid?.()}`,
  ...process.env,
})

/**
 * The reasons for the settings are in docs/machine-service.md. Every setting that restricts this process also restricts the commands
 * of the users, which are its children.
 */
export function renderUnit({ current, prefix }: Layout, scope: SystemdScope, user: AgentUser): string {
  return `# Created by the installer of Boxwood, which also removes it.
[Unit]
Description=Boxwood agent
${scope === 'system' ? 'Wants=network-online.target\nAfter=network-online.target\n' : ''}ConditionPathExists=${current}
StartLimitIntervalSec=0

[Service]
Type=simple
ExecStart=/bin/sh ${current}/supervise.sh ${prefix}
${scope === 'system' && user.name !== null ? `User=${user.name}\n` : ''}Restart=always
RestartSec=5
KillMode=process
TimeoutStopSec=30
Delegate=yes
OOMPolicy=continue
TasksMax=infinity
LimitNOFILE=1048576

[Install]
WantedBy=${scope === 'system' ? 'multi-user' : 'default'}.target
`
}

export function createSystemdService(layout: Layout, scope: SystemdScope, user: AgentUser): Service {
  const isUser = scope === 'user'
  const unitDir = isUser
    ? join(process.env.XDG_CONFIG_HOME || join(user.home, '.config'), 'systemd/user')
    : SYSTEM_UNIT_DIR
  const unitFile = join(unitDir, UNIT)
  const toCommand = (args: readonly string[]) => ['systemctl', ...(isUser ? ['--user'] : []), ...args]
  const env = isUser ? userEnv() : process.env
  const run = (...args: string[]): Promise<void> => runProgram(toCommand(args), env)
  const attempt = (...args: string[]): Promise<Result> => tryProgram(toCommand(args), env)
  const isInstalled = async () => (await readIfExists(unitFile)) !== null
  let isLingering = true

  return {
    kind: isUser ? 'systemd-user' : 'systemd',
    async install(addDirectory) {
      const existing = await readIfExists(unitFile)
      if (existing !== null && !existing.includes(` ${layout.prefix}\n`))
        throw new SetupError(
          `${unitFile} belongs to an agent in another directory. Uninstall that agent first: run the installer with --uninstall --prefix and its directory.`,
        )
      const wantsDir = join(unitDir, `${isUser ? 'default' : 'multi-user'}.target.wants`)
      await addDirectory(wantsDir)
      await writeFile(unitFile, renderUnit(layout, scope, user), { mode: 0o644 })
      await run('daemon-reload')
      await run('enable', UNIT)
      if (isUser) isLingering = await enableLinger()
    },
    async start() {
      await run('start', UNIT)
    },
    async stop() {
      if (await isInstalled()) await run('stop', UNIT)
    },
    async remove() {
      if (!(await isInstalled())) return
      await run('disable', UNIT)
      await rm(unitFile, { force: true })
      await run('daemon-reload')
      await attempt('reset-failed', UNIT)
      if ((await readIfExists(layout.lingerFile)) !== null)
        await tryProgram(['loginctl', 'disable-linger'], env)
    },
    getNotice: () =>
      isLingering
        ? null
        : `The agent runs while you are logged in. To start it with the machine, run as root: loginctl enable-linger ${userInfo().username}`,
  }

  /** Returns whether the user's services start with the machine. Only root can enable it on some machines. */
  async function enableLinger(): Promise<boolean> {
    if (await isLingerEnabled()) return true
    await tryProgram(['loginctl', 'enable-linger'], env)
    const isEnabled = await isLingerEnabled()
    if (isEnabled) await writeFile(layout.lingerFile, '')
    return isEnabled
  }

  async function isLingerEnabled(): Promise<boolean> {
    const uid = String(process.getuid?.())
    const { output } = await tryProgram(['loginctl', 'show-user', uid, '--property=Linger'], env)
    return output === 'Linger=yes'
  }
}
