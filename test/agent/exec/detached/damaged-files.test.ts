// Commands can write the state directory: whatever is at the paths of the files of a process, the agent starts, nothing
// waits, and other processes are not affected.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { readCursor, writeCursor } from '../../../../agent/exec/history/cursor.ts'
import { forEachReplacement } from '../../../support/replaced-file.ts'
import { createTempDir } from '../../../support/temp-dir.ts'
import { createHome, openAgent } from './support.ts'

/** Files of an ended process, and what a list of processes then contains of it. */
const FILES = ['meta.json', 'started', 'exit', 'kill', 'stdout', 'stdout.times', 'stdin-end']

/** Starts two commands and ends the agent. */
async function startTwo(t: Test, command: string) {
  const home = createHome(t)
  const agent = await openAgent(t, home)
  const [damaged, other] = await Promise.all([agent.start(command), agent.start('echo other')])
  return { agent, home, damaged: damaged.processId, other: other.processId, dir: join(home, '.state/exec') }
}

for (const file of FILES)
  t.test(`the agent starts when ${file} was replaced`, async (t) => {
    await forEachReplacement(t, async (t, replace) => {
      const { agent, home, damaged, other, dir } = await startTwo(t, 'echo damaged')
      await agent.waitForExit(damaged)
      await agent.waitForExit(other)
      await agent.close()
      replace(join(dir, damaged, file))
      const next = await openAgent(t, home)
      t.match(await next.getStatus(other), { running: false, exitCode: 0, stdout: 'other\n' })
      const status = await next.request({ path: `/exec/${damaged}` })
      t.ok([200, 404].includes(status.status) || file === 'stdout', `${status.status} ${status.text}`)
    })
  })

t.test('a command is killed when the file of the request was created before', async (t) => {
  await forEachReplacement(t, async (t, replace) => {
    const { agent, damaged, dir } = await startTwo(t, 'sleep 60')
    replace(join(dir, damaged, 'kill.new'))
    t.match(await agent.processes.kill(damaged), { wasRunning: true })
  })
})

t.test('the cursor of the history', async (t) => {
  const session = { epoch: 'epoch', bootId: 'boot' }
  await forEachReplacement(t, async (t, replace) => {
    const dir = createTempDir(t, 'cursor')
    mkdirSync(dir, { recursive: true })
    replace(join(dir, 'history.json'))
    t.match(readCursor(dir, session), { started: false, stdout: 0 })
    try {
      writeCursor(dir, { ...readCursor(dir, session), started: true })
      t.match(readCursor(dir, session), { started: true })
    } catch (error) {
      t.match(error, { code: /ENXIO|EISDIR|ELOOP/ })
    }
  })
})
