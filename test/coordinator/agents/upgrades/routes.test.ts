// The list of the agents, and changes of the rollout, over HTTP and with `box agents`.
import t from 'tap'
import { createAgentLoader } from '../../../../coordinator/agents/upgrades/service.ts'
import { upgradedBoxes } from '../../../../coordinator/boxes/lifecycle/upgraded-boxes.ts'
import { runBox } from '../../../cli/run-box.ts'
import { startTestCoordinator } from '../../../support/coordinator.ts'

t.test('agents and their rollout', async (t) => {
  const { api, url, key, infra, instance, waitForState } = await startTestCoordinator(t)
  const { db } = instance.context
  const loadBox = createAgentLoader(db, upgradedBoxes)
  const { json } = await api('POST', '/boxes', { name: 'fig' })
  const boxId: string = json.box.id
  await waitForState(boxId, 'running')
  const patch = (body: unknown) => api('PATCH', '/agents/rollout', body)

  await t.test('lists connected and offline agents', async (t) => {
    const list = await api('GET', '/agents')
    t.equal(list.status, 200)
    t.same(list.json.rollout, { share: 100, paused: false, updatedBy: null, updatedAt: null })
    const fig = list.json.agents.find((agent: { boxId: string }) => agent.boxId === boxId)
    t.match(fig, { hostname: 'fig', version: '0.0.0', state: 'current', targetBuild: null, detail: null })
    infra.dropTunnel(boxId)
    const offline = (await api('GET', '/agents')).json.agents
    t.match(
      offline.find((agent: { boxId: string }) => agent.boxId === boxId),
      { state: 'offline', targetBuild: null },
    )
    infra.connectAgent(boxId)
  })

  await t.test('a change applies to the fields that it names, and is recorded', async (t) => {
    t.match(await patch({ share: 20 }), { status: 200, json: { rollout: { share: 20, paused: false } } })
    t.match(await patch({ paused: true }), { status: 200, json: { rollout: { share: 20, paused: true } } })
    t.match((await api('GET', '/agents')).json.rollout, { share: 20, paused: true, updatedAt: /Z$/ })
    t.match(await loadBox(boxId, null), { rollout: { share: 20, paused: true }, failedBuild: null })
    const events = (await api('GET', '/audit?kind=agent_rollout.update')).json.events
    t.match(events, [{ detail: { share: 20, paused: true } }, { detail: { share: 20, paused: false } }])
  })

  await t.test('refuses invalid changes', async (t) => {
    for (const body of [
      {},
      { share: 101 },
      { share: -1 },
      { share: 1.5 },
      { share: '5' },
      { paused: 1 },
      { x: 1 },
    ])
      t.match(await patch(body), { status: 400 }, JSON.stringify(body))
  })

  await t.test('a failed build is offered again after a resume, until it fails again', async (t) => {
    t.match(await loadBox(boxId, 'b1@100.1'), { failedBuild: 'b1' })
    t.match(await loadBox(boxId, 'b1@100.1'), { failedBuild: 'b1' }, 'also after a reconnect')
    await patch({ share: 100 })
    t.match(await loadBox(boxId, 'b1@100.1'), { failedBuild: 'b1' })
    await patch({ paused: false })
    t.match(await loadBox(boxId, 'b1@100.1'), { failedBuild: null })
    t.match(await loadBox(boxId, 'b1@200.2'), { failedBuild: 'b1' })
    t.match(await loadBox(boxId, null), { failedBuild: null })
  })

  await t.test('box agents', async (t) => {
    const box = (...args: string[]) => runBox(url, args, { env: { BOXWOOD_API_KEY: key } })
    t.match(await box('agents', 'rollout', '--share', '20', '--pause'), {
      code: 0,
      stderr: '20 % of the boxes get new builds; the rollout is paused.\n',
    })
    t.match(await box('agents', '--filter', 'name=fig'), {
      code: 0,
      stdout: /^fig +0\.0\.0 +current *$/m,
      stderr: /20 % of the boxes get new builds; the rollout is paused\./,
    })
    t.match(await box('agents', 'rollout'), { code: 2, stderr: /Add --share, --pause or --resume/ })
    t.match(await box('agents', 'rollout', '--pause', '--resume'), { code: 2 })
    t.match(await box('agents', 'rollout', '--share', '101'), { code: 2 })
    t.match(await box('agents', 'rollout', '--resume', '--share', '100', '--json'), {
      code: 0,
      stdout: /"paused": ?false/,
    })
  })
})
