// The agent of a machine without a box waits for the variables of the box.
import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { waitForBox } from '../../agent/standby.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { waitUntil } from '../support/wait-until.ts'

function setUp(t: Test, env: Record<string, string> = {}) {
  const stateDir = createTempDir(t, 'standby')
  const variables: Record<string, string | undefined> = {
    BOXWOOD_STANDBY: '1',
    BOXWOOD_STATE: stateDir,
    BOXWOOD_CPUS: '1',
    ...env,
  }
  return { stateDir, variables, file: join(stateDir, 'variables.json') }
}

t.test('an agent of a box does not wait', async (t) => {
  const { stateDir, variables } = setUp(t, { BOXWOOD_STANDBY: '' })
  await waitForBox(variables)
  t.equal(variables.BOXWOOD_CPUS, '1')
  t.notOk(existsSync(join(stateDir, 'standby')))
})

t.test('waits for the variables, and adds them to its own', async (t) => {
  const { stateDir, variables, file } = setUp(t)
  let hasStarted = false
  const started = waitForBox(variables).then(() => {
    hasStarted = true
  })
  await waitUntil('the agent waits', () => existsSync(join(stateDir, 'standby')))
  writeFileSync(join(stateDir, 'token'), 'bxt_test')
  await new Promise((resolve) => setImmediate(resolve))
  t.notOk(hasStarted, 'another file does not end the wait')
  writeFileSync(`${file}.new`, JSON.stringify({ BOXWOOD_CPUS: '4', NAME: 'value' }))
  t.notOk(hasStarted)
  renameSync(`${file}.new`, file)
  await started
  t.equal(variables.BOXWOOD_CPUS, '4')
  t.equal(variables.NAME, 'value')
  t.notOk('BOXWOOD_STANDBY' in variables, 'commands do not get the variable')
})

t.test('an agent that starts again has the variables at once', async (t) => {
  const { stateDir, variables, file } = setUp(t)
  writeFileSync(file, JSON.stringify({ BOXWOOD_CPUS: '2' }))
  await waitForBox(variables)
  t.equal(variables.BOXWOOD_CPUS, '2')
  t.notOk(existsSync(join(stateDir, 'standby')))
})

t.test('a file that is not valid is an error', async (t) => {
  for (const text of ['{', '[]', '{"BOXWOOD_CPUS":4}']) {
    const { variables, file } = setUp(t)
    writeFileSync(file, text)
    await t.rejects(waitForBox(variables), text)
    rmSync(file)
  }
})
