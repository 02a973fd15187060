// An installation without a service manager: the supervisor runs in a session of its own until the machine stops.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, fchownSync, lstatSync, openSync, renameSync } from 'node:fs'
import type { Layout } from '../layout.ts'
import { findSupervisors, terminate } from '../processes.ts'
import type { AgentUser } from '../user.ts'
import type { Service } from './service.ts'

/** Longer than the supervisor's own limit. */
const STOP_GRACE_MS = 15_000
/** A start rotates a larger log; one old log is retained. */
const MAX_LOG_BYTES = 1024 * 1024
/** The log is not opened through a symlink: the directory may belong to another user. */
const LOG_FLAGS = constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW
const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

export function createNoService(layout: Layout, { name, uid, gid }: AgentUser): Service {
  const { prefix, current, logFile } = layout
  const startCommand = `${current}/node ${current}/setup.mjs start`
  return {
    kind: 'none',
    install: async () => undefined,
    async start() {
      if (findSupervisors(prefix).length > 0) return
      rotateLog(logFile)
      const log = openSync(logFile, LOG_FLAGS, 0o600)
      const isOtherUser = uid !== process.getuid?.()
      if (isOtherUser) fchownSync(log, uid, gid)
      const child = spawn('/bin/sh', [`${current}/supervise.sh`, prefix], {
        detached: true,
        stdio: ['ignore', log, log],
        cwd: '/',
        env: { PATH: process.env.PATH ?? SYSTEM_PATH },
        ...(isOtherUser ? { uid, gid } : {}),
      })
      closeSync(log)
      await once(child, 'spawn')
      child.unref()
    },
    stop: () => terminate(() => findSupervisors(prefix), STOP_GRACE_MS),
    remove: async () => undefined,
    getNotice: () =>
      `No service manager starts the agent after a restart of this machine. Start it with: ${name === null ? startCommand : `su -s /bin/sh ${name} -c '${startCommand}'`}`,
  }
}

function rotateLog(path: string): void {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (stats !== undefined && stats.size > MAX_LOG_BYTES) renameSync(path, `${path}.1`)
}
