// The parts of the agent within one process: all of them stop after a failed start, and after close().
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startAgent } from '../../agent/agent.ts'
import { readConfig } from '../../agent/config.ts'
import { lockDirectory } from '../../agent/lock.ts'
import { newUuid } from '../../shared/ids.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { silentLog, startTunnelServer } from '../support/tunnel.ts'

async function createEnv(t: Test) {
  const dir = createTempDir(t, 'agent')
  await writeFile(join(dir, 'token'), 'bxt_test\n', { mode: 0o600 })
  return {
    dir,
    env: {
      BOXWOOD_URL: 'http://127.0.0.1:1',
      BOXWOOD_BOX: newUuid(),
      BOXWOOD_STATE: dir,
      BOXWOOD_HOME: dir,
      PATH: process.env.PATH,
    },
  }
}

/** Rejects while an agent uses the directory. */
async function assertUnused(dir: string): Promise<void> {
  const lock = await lockDirectory(dir)
  await lock.release()
}

t.test('a start that fails closes the parts that have started', async (t) => {
  const { dir, env } = await createEnv(t)
  await writeFile(join(dir, 'desktop'), 'not a directory')
  await t.rejects(startAgent(readConfig(env), silentLog, env))
  await assertUnused(dir)
})

t.test('close() ends the stream of reports while the coordinator stores a chunk', async (t) => {
  const { promise: received, resolve } = Promise.withResolvers<void>()
  const apply = async () => {
    resolve()
    await new Promise(() => undefined)
  }
  const ingest = { apply, heartbeat: () => undefined, listeners: () => undefined }
  const countTimers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const timersBefore = countTimers()
  const coordinator = await startTunnelServer({ ingest })
  const { dir, env } = await createEnv(t)
  const { boxId, token } = coordinator.addBox()
  await writeFile(join(dir, 'token'), token)
  const boxEnv = { ...env, BOXWOOD_URL: coordinator.url, BOXWOOD_BOX: boxId }
  const agent = await startAgent(readConfig(boxEnv), silentLog, boxEnv)
  await received
  await agent.close({ isRestart: true })
  await coordinator.close()
  t.ok(countTimers() <= timersBefore, 'no timer delays the exit of the process')
})

t.test('close() stops the agent, which a second one may follow', async (t) => {
  const { dir, env } = await createEnv(t)
  for (const isRestart of [true, false]) {
    const agent = await startAgent(readConfig(env), silentLog, env)
    await t.rejects(lockDirectory(dir), /another agent is running/)
    await agent.close({ isRestart })
    await assertUnused(dir)
  }
})
