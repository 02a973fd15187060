// An installation without a service manager: the supervisor runs in a session of its own until the machine stops.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, closeSync, openSync, renameSync, statSync } from 'node:fs'
import type { Layout } from '../layout.ts'
import { findSupervisors, terminate } from '../processes.ts'
import type { AgentUser } from '../user.ts'
import type { Service } from './service.ts'

/** Longer than the supervisor's own limit. */
const STOP_GRACE_MS = 15_000
/** At a start, a larger log is rotated; one old log is retained. */
const MAX_LOG_BYTES = 1024 * 1024
const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

export function createNoService(layout: Layout, { uid, gid }: AgentUser): Service {
  const { prefix, current, logFile } = layout
  return {
    kind: 'none',
    install: async () => undefined,
    async start() {
      if (findSupervisors(prefix).length > 0) return
      rotateLog(logFile)
      const log = openSync(logFile, 'a', 0o600)
      const isOtherUser = uid !== process.getuid?.()
      if (isOtherUser) chownSync(logFile, uid, gid)
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
      `No service manager starts the agent after a restart of this machine. Start it with: ${current}/node ${current}/setup.mjs start`,
  }
}

function rotateLog(path: string): void {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats !== undefined && stats.size > MAX_LOG_BYTES) renameSync(path, `${path}.1`)
}
