// The pools of connections to real hosts after their last user.
import t from 'tap'
import {
  MAX_UNUSED_POOLS,
  UpstreamAgents,
} from '../../../../coordinator/edge/secret-broker/upstream-agents.ts'

const KEPT = { isCut: false }

const createAgents = () =>
  new UpstreamAgents({ lookup: (host, _options, callback) => callback(new Error(host), ''), port: 443 })

t.test('a pool is used again after its last release, and not after a cut', async (t) => {
  const agents = createAgents()
  const first = agents.acquire('box_1', 'a.test')
  first.release(KEPT)
  first.release(KEPT)
  const second = agents.acquire('box_1', 'a.test')
  const third = agents.acquire('box_1', 'a.test')
  t.equal(second.agent, first.agent)
  t.equal(third.agent, first.agent)
  second.release({ isCut: true })
  t.equal(agents.acquire('box_1', 'a.test').agent, first.agent, 'another program uses it')
  agents.close()
})

t.test('a cut closes the pool', async (t) => {
  const agents = createAgents()
  const { agent, release } = agents.acquire('box_1', 'a.test')
  release({ isCut: true })
  t.equal(agents.size, 0)
  t.not(agents.acquire('box_1', 'a.test').agent, agent)
})

t.test('each box and host has a pool of its own', async (t) => {
  const agents = createAgents()
  const { agent, release } = agents.acquire('box_1', 'a.test')
  release(KEPT)
  t.not(agents.acquire('box_2', 'a.test').agent, agent)
  t.not(agents.acquire('box_1', 'b.test').agent, agent)
  agents.close()
})

t.test('unused pools have a limit, and are closed with the broker', async (t) => {
  const agents = createAgents()
  const used = agents.acquire('box_1', 'used.test')
  for (let i = 0; i <= MAX_UNUSED_POOLS; i += 1) agents.acquire('box_1', `${i}.test`).release(KEPT)
  t.equal(agents.size, MAX_UNUSED_POOLS + 1)
  t.equal(agents.acquire('box_1', 'used.test').agent, used.agent)
  agents.close()
  t.equal(agents.size, 1)
})
