// However the coordinator ends, a line of its log says why; after a SIGKILL the next start says it.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { databaseEnv } from '../support/database-env.ts'
import { PROJECT_DIR, START_SCRIPT } from '../support/project.ts'
import { stopDataDirectory } from '../support/stop-data-directory.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { waitUntil } from '../support/wait-until.ts'

type Line = { level: number; msg?: string; reason?: string; exitCode?: number; endedPid?: number }

/** Starts coordinators, one after the other, whose log is a file. */
function setUp(t: Test) {
  const dataDir = createTempDir(t, 'exit')
  const logFile = join(createTempDir(t, 'log'), 'log')
  t.teardown(() => stopDataDirectory(dataDir))
  const readText = () => readFileSync(logFile, 'utf8')
  const readLines = (): Line[] =>
    readText()
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line))
  return {
    readLines,
    readText,
    async start(env: Record<string, string> = {}) {
      const fd = openSync(logFile, 'w')
      const started = spawn(join(PROJECT_DIR, START_SCRIPT), [], {
        cwd: PROJECT_DIR,
        stdio: ['ignore', 'ignore', fd],
        env: {
          ...process.env,
          BOXWOOD_DATA: dataDir,
          BOXWOOD_LISTEN: '127.0.0.1:0',
          BOXWOOD_LOG: 'info',
          ...databaseEnv(dataDir),
          ...env,
        },
      })
      closeSync(fd)
      await waitUntil('the coordinator runs', () => {
        if (started.exitCode !== null) return true
        try {
          return JSON.parse(readFileSync(join(dataDir, 'coordinator.json'), 'utf8')).pid === started.pid
        } catch {
          return false
        }
      })
      return {
        pid: started.pid,
        async end(signal: NodeJS.Signals) {
          const exited = once(started, 'exit')
          if (started.kill(signal)) await exited
          return { code: started.exitCode, last: readLines().at(-1) }
        },
      }
    },
  }
}

t.test('a signal is in the last line', async (t) => {
  const { start } = setUp(t)
  for (const signal of ['SIGHUP', 'SIGUSR2'] as const)
    t.match(await (await start()).end(signal), {
      code: 0,
      last: { msg: 'the coordinator exits', reason: signal, exitCode: 0 },
    })
})

t.test('a start that fails ends with its reason for a person, and no other line', async (t) => {
  const { start, readText } = setUp(t)
  const failed = await start({ BOXWOOD_SNAPSHOT_LIMIT: 'high' })
  t.match(await failed.end('SIGTERM'), { code: 2, last: undefined })
  t.match(readText(), /^.*BOXWOOD_SNAPSHOT_LIMIT.*\n$/)
})

t.test('the next start reports a coordinator that was killed', async (t) => {
  const { start, readLines } = setUp(t)
  const killed = await start()
  const { last } = await killed.end('SIGKILL')
  t.not(last?.msg, 'the coordinator exits')
  const next = await start()
  t.match(
    readLines().find(({ endedPid }) => endedPid !== undefined),
    { endedPid: killed.pid, msg: /ended without stopping.*SIGKILL/ },
  )
  await next.end('SIGTERM')
  const third = await start()
  t.equal(
    readLines().find(({ endedPid }) => endedPid !== undefined),
    undefined,
    'not after one that has stopped',
  )
  await third.end('SIGTERM')
})
