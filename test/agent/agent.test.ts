// The parts of the agent within one process: all of them stop after a failed start, and after close().
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startAgent } from '../../agent/agent.ts'
import { readConfig } from '../../agent/config.ts'
import { lockDirectory } from '../../agent/lock.ts'
import { newUuid } from '../../shared/ids.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { silentLog } from '../support/tunnel.ts'

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
  const config = readConfig({ ...env, BOXWOOD_SOCKET: join(dir, 'missing', 'socket') })
  await t.rejects(startAgent(config, silentLog, env))
  await assertUnused(dir)
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
