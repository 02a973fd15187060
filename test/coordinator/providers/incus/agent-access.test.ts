// How boxes reach the coordinator, on its machine and on others.
import t from 'tap'
import { createAgentAccess } from '../../../../coordinator/providers/incus/agent-access.ts'
import type { Server } from '../../../../coordinator/providers/incus/server.ts'

const server = { name: 'node1' } as Server

t.test(
  'boxes on the machine of the coordinator use its socket, and boxes elsewhere need a URL',
  async (t) => {
    const access = createAgentAccess({
      agentSocketDir: '/run/boxwood',
      coordinatorUrl: 'http://127.0.0.1:7070',
    })
    t.equal(access.url, 'unix:/opt/boxwood/coordinator/agent.sock')
    t.match(access.createDevice(server, 'node1'), { type: 'disk', source: '/run/boxwood', readonly: 'true' })
    t.throws(() => access.createDevice(server, 'node2'), { message: /Set BOXWOOD_AGENT_URL/ })
  },
)

t.test('members connect to an http URL for their boxes, and boxes to an https URL', async (t) => {
  const url = (coordinatorUrl: string) => createAgentAccess({ agentSocketDir: null, coordinatorUrl })
  t.equal(url('http://10.0.0.1:7070').createDevice(server, 'node2')?.connect, 'tcp:10.0.0.1:7070')
  t.equal(url('http://boxes.example.com').createDevice(server, 'node2')?.connect, 'tcp:boxes.example.com:80')
  t.equal(url('https://boxes.example.com').createDevice(server, 'node2'), null)
  t.equal(url('https://boxes.example.com').url, 'https://boxes.example.com')
})
