// What the coordinator does with the states of containers. The engine is a fake.
import t from 'tap'
import {
  findContainer,
  isInterruptedStart,
  stopContainer,
  stopInterrupted,
} from '../../../../coordinator/providers/docker/containers.ts'
import type { Engine } from '../../../../coordinator/providers/docker/engine.ts'
import { createLabels, getContainerName } from '../../../../coordinator/providers/docker/names.ts'
import type { EngineRequest } from '../../../../coordinator/providers/engine-http/client.ts'
import { EngineStatusError } from '../../../../coordinator/providers/engine-http/errors.ts'
import { createMachines } from './support.ts'

const BOX = '00000000-0000-4000-8000-000000000001'
const DEPLOYMENT = '0123456789abcdef'

function createEngine(status: string, pid = 0, stopSignal = 'SIGPWR') {
  const calls: string[] = []
  const json = async ({ method, path }: EngineRequest) => {
    if (method !== 'GET') {
      calls.push(`${method} ${path}`)
      if (path.endsWith('/stop')) [status, pid] = ['exited', 0]
      return undefined
    }
    return {
      Id: 'id',
      Image: 'image',
      // As Podman describes a container whose start or stop has not ended.
      State: { Status: status, Running: status === 'running', Paused: status === 'paused', Pid: pid },
      Config: { Labels: createLabels(DEPLOYMENT, 'machine', { boxId: BOX }), StopSignal: stopSignal },
      HostConfig: {},
    }
  }
  return { engine: { http: { json }, deploymentId: DEPLOYMENT } as unknown as Engine, calls }
}

const STOP = `POST /containers/${getContainerName(BOX)}/stop`

t.test('a container whose start or stop was interrupted runs until it is stopped', async (t) => {
  for (const status of ['stopping', 'created']) {
    const { engine, calls } = createEngine(status, 123)
    t.equal((await findContainer(engine, BOX))?.state, 'running', status)
    await stopContainer(engine, BOX)
    t.strictSame(calls, [STOP])
    const next = createEngine(status, 123)
    await stopInterrupted(next.engine, BOX)
    t.strictSame(next.calls, [STOP])
  }
})

t.test(
  'a container of an earlier version, with the stop signal TERM, gets that of its init too',
  async (t) => {
    const { engine, calls } = createEngine('running', 123, 'SIGTERM')
    await stopContainer(engine, BOX)
    t.strictSame(calls, [`POST /containers/${getContainerName(BOX)}/kill`, STOP])
  },
)

t.test('the inspection of a machine ends its interrupted stop', async (t) => {
  const { engine, calls } = createEngine('stopping', 123)
  const { machines } = createMachines(engine)
  t.equal(await machines.inspect(BOX), 'stopped')
  t.strictSame(calls, [STOP])
})

t.test('no other container is stopped before its start', async (t) => {
  for (const status of ['running', 'paused', 'exited', 'created']) {
    const { engine, calls } = createEngine(status)
    await stopInterrupted(engine, BOX)
    t.strictSame(calls, [], status)
  }
})

t.test('a start that has removed the remains of another one is repeated', async (t) => {
  const refuse = (reason: string) => new EngineStatusError('Podman', 'POST /start', 500, reason)
  for (const reason of [
    'runc: runc create failed: container with given ID already exists: OCI runtime error',
    'crun: container `0123` already exists: OCI runtime error',
    'failed to allocate for range 0: 10.0.0.3 has been allocated to 0123, duplicate allocation is not allowed',
  ])
    t.equal(isInterruptedStart(refuse(reason)), true, reason)
  t.equal(isInterruptedStart(refuse('`/usr/bin/runc start 0123` failed: exit status 1')), false)
})
