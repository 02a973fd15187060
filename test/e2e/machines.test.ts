// Enrolled machines over HTTP: tokens, their exchange, the states of the box, and its deletion.
import t from 'tap'
import { startTestCoordinator } from '../support/coordinator.ts'
import { connectMachine, enrollMachine, exchange } from '../support/enroll.ts'
import { FakeInfrastructure } from '../support/fake-infrastructure.ts'

/** Boxes with machines in memory, and real tunnels for the agents of enrolled machines. */
const startCoordinator = (t: Parameters<typeof startTestCoordinator>[0]) =>
  startTestCoordinator(t, { machines: 'local', provider: new FakeInfrastructure().provider })

t.test('a machine becomes a box when its agent connects', async (t) => {
  const coordinator = await startCoordinator(t)
  const created = await coordinator.api('POST', '/machines', { name: 'fig', env: { A: 'b' } })
  t.equal(created.status, 201)
  const { enrollment, token, command } = created.json
  t.match(enrollment, { id: /^enr_/, name: 'fig', region: 'us-west-2', restricted: false })
  t.match(token, /^bxe_[0-9A-Za-z]{38}$/)
  t.equal(command, `curl -fsSL ${coordinator.url}/install.sh | sh -s -- --token ${token}`)
  const listed = await coordinator.api('GET', '/machines')
  t.same(listed.json.enrollments, [enrollment])

  const machine = await enrollMachine(coordinator)
  t.equal(machine.name, 'build-server', 'the hostname of the machine')
  const { json } = await coordinator.api('GET', `/boxes/${machine.boxId}`)
  t.match(json.box, { kind: 'machine', tier: 'flow', observedState: 'bootstrapping' })
  t.match(json.job, { op: 'enroll', step: 'connect', nextRetryAt: null })

  const agent = await connectMachine(machine, coordinator.url)
  t.teardown(() => agent.close())
  const box = await coordinator.waitForState(machine.boxId, 'running')
  t.match(box, { kind: 'machine', hostname: 'build-server', isolation: null })
  const exchanged = await exchange(coordinator.url, token)
  t.match(exchanged, { status: 201, json: { name: 'fig' } })
})
