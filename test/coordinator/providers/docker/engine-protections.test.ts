// An engine that protects boxes less than before gets no boxes until the operator accepts it.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { describeEngine } from '../../../../coordinator/providers/docker/describe-engine.ts'
import type { Engine } from '../../../../coordinator/providers/docker/engine.ts'
import { EngineProtections } from '../../../../coordinator/providers/docker/engine-protections.ts'
import { EngineState } from '../../../../coordinator/providers/docker/engine-state.ts'
import { EngineTimeoutError } from '../../../../coordinator/providers/engine-http/errors.ts'
import { createTempDir } from '../../../support/temp-dir.ts'
import { silentLog } from '../../../support/tunnel.ts'

const STRONG = {
  ServerVersion: '1',
  CpuCfsQuota: true,
  MemoryLimit: true,
  PidsLimit: true,
  SecurityOptions: ['name=seccomp,profile=builtin', 'name=userns'],
}

/** @param read the response to GET /info */
function createState(file: string, read: () => Promise<object>, { isAccepted = false } = {}) {
  const protections = new EngineProtections({ file, isAccepted })
  const http = { name: 'Docker', address: { kind: 'unix', path: '/engine.sock' }, json: read }
  const engine = { kind: 'docker', http, deploymentId: 'test', log: silentLog } as unknown as Engine
  return { engine, protections, state: new EngineState(engine, false, protections) }
}

async function createRecord(t: Test) {
  const file = join(createTempDir(t, 'engine'), 'docker/protections.json')
  await createState(file, async () => STRONG).state.read()
  return file
}

t.test('records the engine and its protections', async (t) => {
  const file = await createRecord(t)
  t.strictSame(JSON.parse(readFileSync(file, 'utf8')), {
    address: 'unix:///engine.sock',
    protections: ['cpu', 'memory', 'pids', 'seccomp', 'user_ids'],
  })
  t.equal(createState(file, async () => STRONG).protections.address, 'unix:///engine.sock')
})

t.test('refuses an engine with fewer protections, and names them and the setting', async (t) => {
  const file = await createRecord(t)
  const before = readFileSync(file, 'utf8')
  const weaker = { ...STRONG, MemoryLimit: false, SecurityOptions: [] }
  const { engine, state } = createState(file, async () => weaker)
  await t.rejects(state.read(), {
    name: 'PermanentProviderError',
    message:
      'Docker protects its boxes less than before: it has no limit of memory, no filter of system calls (seccomp), no user of the machine that is not root (rootless or userns-remap). Restore it in the engine, or accept this with BOXWOOD_PROTECTIONS=any, and restart the coordinator.',
  })
  t.match(describeEngine(engine, state), /restart the coordinator\.$/)
  t.equal(readFileSync(file, 'utf8'), before)
  await t.rejects(state.read(), { name: 'PermanentProviderError' }, 'also the next time')
  const accepted = createState(file, async () => weaker, { isAccepted: true }).state
  t.match(await accepted.read(), { limits: ['cpu', 'pids'], hasSeccomp: false })
  const stronger = createState(file, async () => STRONG).state
  t.match(await stronger.read(), { hasSeccomp: true })
  await t.rejects(createState(file, async () => weaker).state.read(), /less than before/)
})

t.test('an engine that becomes weaker while the coordinator runs is refused', async (t) => {
  const file = await createRecord(t)
  let info = STRONG
  const { state } = createState(file, async () => info)
  await state.read()
  info = { ...STRONG, PidsLimit: false }
  await t.rejects(state.refresh(), /no limit of processes/)
  t.equal(state.latest, undefined)
})

t.test('an engine that does not answer is no answer', async (t) => {
  const file = join(createTempDir(t, 'engine'), 'docker/protections.json')
  const { engine, state } = createState(file, async () => {
    throw new EngineTimeoutError('Docker did not answer within 10 s.')
  })
  await t.rejects(state.read(), { name: 'EngineTimeoutError' })
  t.notOk(existsSync(file))
  t.equal(
    describeEngine(engine, state),
    'Docker did not answer within 10 s. Its boxes start when it answers.',
  )
})

t.test('a damaged record is refused', async (t) => {
  const file = await createRecord(t)
  writeFileSync(file, '{}')
  t.throws(() => createState(file, async () => STRONG), {
    name: 'PermanentProviderError',
    message: /protections\.json is damaged: unknown content\. Delete it/,
  })
})
