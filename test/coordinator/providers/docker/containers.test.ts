// What the coordinator does with the states of containers. The engine is a fake.
import t from 'tap'
import {
  findContainer,
  finishStop,
  stopContainer,
} from '../../../../coordinator/providers/docker/containers.ts'
import type { Engine } from '../../../../coordinator/providers/docker/engine.ts'
import { createLabels, getContainerName } from '../../../../coordinator/providers/docker/names.ts'
import type { EngineRequest } from '../../../../coordinator/providers/engine-http/client.ts'

const BOX = '00000000-0000-4000-8000-000000000001'
const DEPLOYMENT = '0123456789abcdef'

function createEngine(status: string) {
  const calls: string[] = []
  const json = async ({ method, path }: EngineRequest) => {
    if (method !== 'GET') {
      calls.push(`${method} ${path}`)
      return undefined
    }
    return {
      Id: 'id',
      Image: 'image',
      // As Podman describes a container whose stop has not ended.
      State: { Status: status, Running: status === 'running', Paused: status === 'paused' },
      Config: { Labels: createLabels(DEPLOYMENT, 'machine', { boxId: BOX }) },
      HostConfig: {},
    }
  }
  return { engine: { http: { json }, deploymentId: DEPLOYMENT } as unknown as Engine, calls }
}

const STOP = `POST /containers/${getContainerName(BOX)}/stop`

t.test('a container whose stop was interrupted runs until it is stopped again', async (t) => {
  const { engine, calls } = createEngine('stopping')
  t.equal((await findContainer(engine, BOX))?.state, 'running')
  await stopContainer(engine, BOX)
  t.strictSame(calls, [STOP])
  await finishStop(engine, BOX)
  t.strictSame(calls, [STOP, STOP])
})

t.test('no other container is stopped before its start', async (t) => {
  for (const status of ['running', 'paused', 'exited', 'created']) {
    const { engine, calls } = createEngine(status)
    await finishStop(engine, BOX)
    t.strictSame(calls, [], status)
  }
})
