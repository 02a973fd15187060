// The networks of boxes: the choice of their subnets, and the requests to the engine.
import t from 'tap'
import type { Engine } from '../../../../coordinator/providers/docker/engine.ts'
import { getNetworkName } from '../../../../coordinator/providers/docker/names.ts'
import { listFreeSubnets, Networks } from '../../../../coordinator/providers/docker/networks.ts'
import type { EngineRequest } from '../../../../coordinator/providers/engine-http/client.ts'
import { EngineStatusError } from '../../../../coordinator/providers/engine-http/errors.ts'

const CASES: { name: string; ranges: string[]; used: string[]; expected: string[] }[] = [
  {
    name: 'the first ones of an empty range',
    ranges: ['10.213.0.0/28'],
    used: [],
    expected: ['10.213.0.0/29', '10.213.0.8/29'],
  },
  {
    name: 'none that is used',
    ranges: ['10.213.0.0/27'],
    used: ['10.213.0.8/29', '10.213.0.24/29'],
    expected: ['10.213.0.0/29', '10.213.0.16/29'],
  },
  {
    name: 'none in a larger or smaller used subnet',
    ranges: ['10.213.0.0/26'],
    used: ['10.213.0.0/27', '10.213.0.33/32', '172.17.0.0/16', 'fd00::/64'],
    expected: ['10.213.0.40/29', '10.213.0.48/29', '10.213.0.56/29'],
  },
  {
    name: 'the next range when one is used up',
    ranges: ['10.213.0.0/29', '10.214.255.248/29'],
    used: ['10.0.0.0/9', '10.213.0.0/16'],
    expected: ['10.214.255.248/29'],
  },
  { name: 'none in a range that is too small', ranges: ['10.213.0.0/30'], used: [], expected: [] },
]

t.test('yields them from the last one', async (t) =>
  t.same(
    [...listFreeSubnets(['10.213.0.0/27', '10.214.0.0/29'], ['10.213.0.9/32'], 'descending')],
    ['10.213.0.24/29', '10.213.0.16/29', '10.213.0.0/29', '10.214.0.0/29'],
  ),
)

for (const { name, ranges, used, expected } of CASES)
  t.test(`yields ${name}`, async (t) => t.same([...listFreeSubnets(ranges, used)], expected))

const BOX = '00000000-0000-4000-8000-000000000001'

/** An engine that has no answer about a single network. */
function createEngine(names: readonly string[]) {
  const requests: EngineRequest[] = []
  const json = async (request: EngineRequest) => {
    requests.push(request)
    const { method, path } = request
    if (method !== 'GET') return undefined
    if (path !== '/networks') throw new EngineStatusError('Podman', `GET ${path}`, 404, 'network not found')
    return names.map((Name) => ({ Name, IPAM: { Config: [{ Subnet: '10.213.0.0/29' }] } }))
  }
  const engine = { kind: 'podman', http: { json }, deploymentId: '0123456789abcdef' } as unknown as Engine
  return { networks: new Networks(engine, ['10.213.0.0/16']), requests }
}

t.test('a new network has the first address as its gateway', async (t) => {
  const { networks, requests } = createEngine([`${getNetworkName(BOX)}-other`])
  await networks.ensure(BOX)
  t.match(requests.at(-1), {
    path: '/networks/create',
    json: { IPAM: { Config: [{ Subnet: '10.213.255.248/29', Gateway: '10.213.255.249' }] } },
  })
})

t.test('a network that the engine lists is removed, whatever it says about it', async (t) => {
  const { networks, requests } = createEngine([getNetworkName(BOX)])
  await networks.ensure(BOX)
  t.strictSame(
    requests.map(({ method }) => method),
    ['GET'],
    'the network exists',
  )
  await networks.remove(BOX)
  t.match(requests.at(-1), { method: 'DELETE', path: `/networks/${getNetworkName(BOX)}` })
})
