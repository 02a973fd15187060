// Two hosts on one engine: a start of one does not remove the containers of a call of the other one.
import t from 'tap'
import type { Engine } from '../../../../coordinator/providers/docker/engine.ts'
import { removeUnusedHelpers } from '../../../../coordinator/providers/docker/helper-container.ts'
import { createLabels, type Labels } from '../../../../coordinator/providers/docker/names.ts'
import type { EngineRequest } from '../../../../coordinator/providers/engine-http/client.ts'

const [OWN, OTHER] = ['0123456789abcdef', 'fedcba9876543210'] as const

t.test('the helper containers of another host remain', async (t) => {
  const containers = new Map<string, Labels>([
    ['own-helper', createLabels(OWN, 'helper')],
    ['other-helper', createLabels(OTHER, 'helper')],
    ['own-box', createLabels(OWN, 'machine')],
  ])
  /** The part of the Engine API that lists containers with labels, and removes one. */
  const json = async ({ method, path, query }: EngineRequest) => {
    if (method === 'DELETE') return void containers.delete(path.replace('/containers/', ''))
    const { label } = JSON.parse(String(query?.filters)) as { label: string[] }
    const hasAll = (labels: Labels) =>
      label.every((text) => Object.entries(labels).some(([name, value]) => `${name}=${value}` === text))
    return [...containers].filter(([, labels]) => hasAll(labels)).map(([name]) => ({ Names: [`/${name}`] }))
  }
  const log = { debug() {}, info() {}, warn() {} }
  const engine = { kind: 'docker', http: { json }, deploymentId: OWN, log } as unknown as Engine
  await removeUnusedHelpers(engine)
  t.same([...containers.keys()], ['other-helper', 'own-box'])
})
